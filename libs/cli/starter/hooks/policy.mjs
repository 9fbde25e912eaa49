// A policy: coxswain.yaml names its handlers. They apply to every session that starts in this folder.
import { allow, deny } from '@coxswain/client';

/**
 * Denies reads of files that hold keys. docs/reference/hooks.md of Coxswain lists the payload and the returns of a handler.
 * @type {import('@coxswain/client').HookHandler<'PreToolUse'>}
 */
export function keepSecrets({ tool }) {
  const { path } = /** @type {{ path?: unknown }} */ (tool.args);
  return /(^|\/)\.env(\.|$)/.test(String(path ?? '')) ? deny(`${path} is not for models`) : allow();
}
