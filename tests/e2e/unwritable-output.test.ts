/** `cox` where what it says cannot be written: one sentence and a code, no stack. */
import { spawn } from 'node:child_process';
import { existsSync, openSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { COX_MAIN, REPOSITORY } from './kit/child.ts';
import { cleanEnv } from './kit/clean-env.ts';

vi.setConfig({ testTimeout: 120_000 });

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
