/** `cox` where what it says cannot be written: one sentence and a code, no stack. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync } from 'node:fs';
import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { COX_MAIN, REPOSITORY } from './kit/child.ts';
import { cleanEnv } from './kit/clean-env.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { hasTerminal } from './kit/terminal.ts';
import { until } from './kit/until.ts';

vi.setConfig({ testTimeout: 120_000 });

afterAll(removeScratch);

const FULL = '/dev/full';

test.skipIf(!existsSync(FULL))('a full device ends the command with 1, and says why', async () => {
  for (const line of [['--help'], ['--version'], ['completions', 'bash'], ['help', 'run']]) {
    const child = spawn(process.execPath, [COX_MAIN, ...line], {
      cwd: REPOSITORY,
      env: cleanEnv({}),
      stdio: ['ignore', openSync(FULL, 'w'), 'pipe'],
    });
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    const code = await new Promise((resolve) => child.once('close', resolve));
    expect({ line, code }, said).toEqual({ line, code: 1 });
    expect(said).toMatch(/^cox: cannot write the output: the disk or the device is full\n {2}→ /m);
    expect(said).not.toMatch(/^\s+at /m);
  }
});

test.skipIf(!hasTerminal)('a closed terminal ends the command in order (needs util-linux’ script)', async () => {
  const folder = await scratchFolder('closed');
  await writeFile(join(folder, 'up.log'), 'a line\n');
  const cox = `'${process.execPath}' '${COX_MAIN}' logs --follow --state-dir '${folder}'`;
  // The shell outlives the terminal and stores the exit code.
  const shell = `trap '' HUP; ${cox}; echo $? > '${folder}/code.new'; mv '${folder}/code.new' '${folder}/code'`;
  const terminal = spawn('script', ['-qefc', shell, '/dev/null'], { env: cleanEnv({}) });
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (text.includes('a line')) terminal.kill('SIGKILL');
  });
  await once(terminal, 'close');
  // The command may not have waited for a stop yet. Then this line cannot be written.
  await appendFile(join(folder, 'up.log'), 'another line\n');
  const code = await until('the exit code', () => readFile(join(folder, 'code'), 'utf8').catch(() => null));
  expect(code).toBe('129\n');
});
