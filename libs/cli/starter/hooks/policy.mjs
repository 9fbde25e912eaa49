// A policy: coxswain.yaml names its handlers, for every session that is started in this folder.

/** Refuses to read what holds keys. What a handler is given and may return is in docs/reference/hooks.md of Coxswain. */
export function keepSecrets({ tool }) {
  const path = String(tool.args.path ?? '');
  return /(^|\/)\.env(\.|$)/.test(path) ? { deny: `${path} is not for models` } : true;
}
