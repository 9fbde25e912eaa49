/** Folders of this machine that a command line speaks of. */
import { resolve } from 'node:path';
import { defaultStateDir, typedIn } from '@coxswain/ports/discovery';
import { usageError } from '../line/cli-error.ts';
import type { Flags } from '../line/flags.ts';

export { defaultStateDir, typedIn } from '@coxswain/ports/discovery';

/** Where the embedded server keeps its state: `--state-dir`, `COX_STATE_DIR`, or the user's state folder. */
export function stateDirOf(flags: Flags, env: NodeJS.ProcessEnv): string {
  const named = flags.text('state-dir');
  // An unset variable in a script must not turn the folder one stands in into a store.
  if (named?.trim() === '') throw usageError('--state-dir needs a folder');
  const asked = named ?? (env.COX_STATE_DIR || undefined);
  return asked === undefined ? defaultStateDir(env) : resolve(typedIn(env), asked);
}
