// A policy: coxswain.yaml names its handlers, for every session that is started in this folder.
import { allow, deny } from '@coxswain/client';

/**
 * Refuses to read what holds keys. What a handler is given and may return is in docs/reference/hooks.md of Coxswain.
 * @type {import('@coxswain/client').HookHandler<'PreToolUse'>}
 */
export function keepSecrets({ tool }) {
  const { path } = /** @type {{ path?: unknown }} */ (tool.args);
  return /(^|\/)\.env(\.|$)/.test(String(path ?? '')) ? deny(`${path} is not for models`) : allow();
}
