/** Folders of the current user. */
import { homedir, userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';

/**
 * The folder in which the user typed the command. npm runs scripts in the project's folder and sets `INIT_CWD` to the
 * caller's.
 */
export function callerFolder(env: NodeJS.ProcessEnv): string {
  return env.INIT_CWD && isAbsolute(env.INIT_CWD) ? env.INIT_CWD : process.cwd();
}

/** The default state directory: `$XDG_STATE_HOME/coxswain`; without the variable, under `~/.local/state`. */
export function defaultStateDir(env: NodeJS.ProcessEnv): string {
  // The XDG Base Directory Specification requires that a relative XDG_STATE_HOME is ignored.
  const base = env.XDG_STATE_HOME && isAbsolute(env.XDG_STATE_HOME) ? env.XDG_STATE_HOME : join(home(), '.local/state');
  return join(base, 'coxswain');
}

/** The user's home folder. If HOME is empty, the system's user database decides. */
export function home(): string {
  return homedir() || userInfo().homedir;
}
