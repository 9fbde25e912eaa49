/** `cox session trace` and `cox session inspect` on files that are not a whole session export. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ERROR_CATALOGUE } from '@coxswain/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCox } from './run-cox.ts';

const WHOLE = readFileSync(join(import.meta.dirname, '../../../tests/traces/plain-answer.jsonl'), 'utf8');
const LINES = WHOLE.trimEnd().split('\n');
const [FIRST = '', SECOND = ''] = LINES;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-export-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** Runs the command on a file with this text. */
async function runOn(command: string, text: string) {
  await writeFile(join(folder, 'file'), text);
  const { code, err } = await runCox(['session', command, './file'], { INIT_CWD: folder });
  return { code, err };
}

describe.each(['trace', 'inspect'])('cox session %s', (command) => {
  test('accepts a whole export', async () => {
    expect(await runOn(command, WHOLE)).toEqual({ code: 0, err: '' });
  });

  test.each([
    ['other text', 'root:x:0:0::/root:/bin/sh\n', './file is not a session export: it does not start with a record'],
    ['other JSON', '{"type":"log"}\n', './file is not a session export: it does not start with a record'],
    ['an empty file', '', './file is not a session export: it contains no record'],
    [
      'an export that was cut off',
      `${FIRST}\n${SECOND.slice(0, SECOND.length / 2)}`,
      './file is cut off after record 1',
    ],
    ['an export that was cut off early', FIRST.slice(0, 100), './file is cut off in its first record'],
    [
      'an export with another line in it',
      `${FIRST}\nhello\n${SECOND}\n`,
      './file is not a session export: the line after record 1 is not a record',
    ],
  ])('rejects %s with the reason and a remedy', async (_what, text, sentence) => {
    const { code, err } = await runOn(command, text);
    expect(code).toBe(1);
    expect(err).toBe(`cox: export_line_invalid: ${sentence}\n  → ${ERROR_CATALOGUE.export_line_invalid.caller}\n`);
  });

  test('reports an unknown record version as written by another release', async () => {
    const { err } = await runOn(command, `${JSON.stringify({ ...JSON.parse(FIRST), v: 999 })}\n`);
    expect(err).toMatch(/^cox: record_unreadable: .*version 999/);
    expect(err).toContain(ERROR_CATALOGUE.record_unreadable.caller);
  });
});

test('an import that is stopped leaves no copy of its standard input', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'cox-imports-'));
  const copies = async () =>
    (await readdir(folder, { recursive: true })).filter((name) => name.includes('cox-import-'));
  const line = new URL('../src/line/mod.ts', import.meta.url).href;
  const child = spawn(
    process.execPath,
    [
      ...['--conditions=coxswain-source', '--import', 'tsx', '--input-type=module', '--eval'],
      `import { dispatch } from '${line}';
       process.exitCode = await dispatch(['session', 'import', '-'], process.env);`,
    ],
    { stdio: ['pipe', 'ignore', 'ignore'], env: { ...process.env, TMPDIR: folder }, cwd: import.meta.dirname },
  );
  const closed = once(child, 'close');
  child.stdin.write('{"at":');
  while (!(await copies()).some((name) => name.endsWith('journal.jsonl'))) await sleep(20);
  child.kill('SIGINT');
  expect(await closed).toEqual([130, null]);
  expect(await copies()).toEqual([]);
  await rm(folder, { recursive: true });
}, 60_000);
