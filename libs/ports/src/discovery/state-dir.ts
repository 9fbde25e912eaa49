/** Folders of this machine's user. */
import { homedir, userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** The folder in which the user typed: npm runs scripts in the project's folder, and names the caller's in `INIT_CWD`. */
export function typedIn(env: NodeJS.ProcessEnv): string {
  return env.INIT_CWD && isAbsolute(env.INIT_CWD) ? env.INIT_CWD : process.cwd();
}

/** The user's state folder, where none is named: `$XDG_STATE_HOME/coxswain`, by default in `~/.local/state`. */
export function defaultStateDir(env: NodeJS.ProcessEnv): string {
  // The specification says that a relative XDG_STATE_HOME is to be ignored (XDG Base Directory Specification).
  const base = env.XDG_STATE_HOME && isAbsolute(env.XDG_STATE_HOME) ? env.XDG_STATE_HOME : join(home(), '.local/state');
  return join(base, 'coxswain');
}

/** The home folder of the user. With HOME set to nothing the system's own record of the user is used. */
export function home(): string {
  return homedir() || userInfo().homedir;
}
