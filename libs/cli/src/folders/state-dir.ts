/** The folders of a command line. */
import { resolve } from 'node:path';
import { callerFolder, defaultStateDir } from '@coxswain/ports/discovery';
import { type Flags, usageError } from '../line/mod.ts';

export { callerFolder, defaultStateDir } from '@coxswain/ports/discovery';

/**
 * The state directory: `--state-dir`, `COX_STATE_DIR`, or the user's default. @throws CliError with exit code 2 for an
 * empty flag.
 */
export function stateDirOf(flags: Flags, env: NodeJS.ProcessEnv): string {
  const named = flags.text('state-dir');
  // An unset variable in a script must not turn the current folder into a state directory.
  if (named?.trim() === '') throw usageError('--state-dir needs a folder');
  const asked = named ?? (env.COX_STATE_DIR || undefined);
  return asked === undefined ? defaultStateDir(env) : resolve(callerFolder(env), asked);
}
