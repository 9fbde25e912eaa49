/** Folders of this machine that a command line speaks of. */
import { homedir, userInfo } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { usageError } from '../line/cli-error.ts';
import type { Flags } from '../line/flags.ts';

/** The folder in which the person typed: npm runs scripts in the project's folder, but says where it was called. */
export function typedIn(env: NodeJS.ProcessEnv): string {
  return env.INIT_CWD && isAbsolute(env.INIT_CWD) ? env.INIT_CWD : process.cwd();
}

/** Where the embedded server keeps its state: `--state-dir`, `COX_STATE_DIR`, or the user's state folder. */
export function stateDirOf(flags: Flags, env: NodeJS.ProcessEnv): string {
  const named = flags.text('state-dir');
  // An unset variable in a script must not turn the folder one stands in into a store.
  if (named?.trim() === '') throw usageError('--state-dir needs a folder');
  const asked = named ?? (env.COX_STATE_DIR || undefined);
  return asked === undefined ? defaultStateDir(env) : resolve(typedIn(env), asked);
}

/** The user's state folder, which is used where none is named. */
export function defaultStateDir(env: NodeJS.ProcessEnv): string {
  // The specification says that a relative XDG_STATE_HOME is to be ignored (XDG Base Directory Specification).
  const base = env.XDG_STATE_HOME && isAbsolute(env.XDG_STATE_HOME) ? env.XDG_STATE_HOME : join(home(), '.local/state');
  return join(base, 'coxswain');
}

// With HOME set to nothing the system's own record of the user stands; a relative folder would lie wherever one is.
function home(): string {
  return homedir() || userInfo().homedir;
}
