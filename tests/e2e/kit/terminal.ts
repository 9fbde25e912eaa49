/** `cox` at a terminal: a pseudo-terminal that the test types at and reads. */
import { spawn, spawnSync } from 'node:child_process';
import { COX_MAIN, SHORT_LIVED } from './child.ts';
import { cleanEnv } from './clean-env.ts';

/** `script` of util-linux gives a command a terminal and passes on what it is sent; that of other systems does not. */
export const hasTerminal = /util-linux/.test(spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout ?? '');

const quoted = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`;

/** Starts `cox` at one; its exit code is that of `cox`, not of a shell that got the same Ctrl-C. */
export function atTerminal(cox: readonly string[], cwd: string, env: NodeJS.ProcessEnv) {
  const command = `exec ${[process.execPath, ...SHORT_LIVED, COX_MAIN, ...cox].map(quoted).join(' ')}`;
  return spawn('script', ['-qefc', command, '/dev/null'], {
    cwd,
    env: cleanEnv({ TERM: 'xterm-256color', LANG: 'C.UTF-8', ...env }),
  });
}
