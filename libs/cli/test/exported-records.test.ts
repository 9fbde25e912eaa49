/** Files that `cox session trace` and `cox session inspect` are given in place of what `cox session export` has written. */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ERROR_CATALOGUE } from '@coxswain/protocol';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { dispatch } from '../src/line/dispatch.ts';

const WHOLE = readFileSync(join(import.meta.dirname, '../../../tests/traces/plain-answer.jsonl'), 'utf8');
const LINES = WHOLE.trimEnd().split('\n');
const [FIRST = '', SECOND = ''] = LINES;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-export-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** What the command says of a file that holds this. */
async function said(command: string, text: string): Promise<{ code: number; err: string }> {
  await writeFile(join(folder, 'file'), text);
  let err = '';
  const spies = [
    vi.spyOn(process.stdout, 'write').mockReturnValue(true),
    vi.spyOn(process.stderr, 'write').mockImplementation((chunk) => {
      err += String(chunk);
      return true;
    }),
  ];
  try {
    return { code: await dispatch(['session', command, './file'], { INIT_CWD: folder }), err };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

describe.each(['trace', 'inspect'])('cox session %s', (command) => {
  test('takes a whole one', async () => {
    expect(await said(command, WHOLE)).toEqual({ code: 0, err: '' });
  });

  test.each([
    [
      'something else',
      'root:x:0:0::/root:/bin/sh\n',
      './file is not a session export: it does not start with a record',
    ],
    ['other JSON', '{"type":"log"}\n', './file is not a session export: it does not start with a record'],
    ['nothing', '', './file is not a session export: it contains no record'],
    ['one that was cut off', `${FIRST}\n${SECOND.slice(0, SECOND.length / 2)}`, './file is cut off after record 1'],
    ['one that was cut off early', FIRST.slice(0, 100), './file is cut off in its first record'],
    [
      'one with more in it',
      `${FIRST}\nhello\n${SECOND}\n`,
      './file is not a session export: the line after record 1 is not a record',
    ],
  ])('says of %s what it is, and what to do', async (_what, text, sentence) => {
    const { code, err } = await said(command, text);
    expect(code).toBe(1);
    expect(err).toBe(`cox: export_line_invalid: ${sentence}\n  → ${ERROR_CATALOGUE.export_line_invalid.caller}\n`);
  });

  test('sends to another release only for what one may have written', async () => {
    const { err } = await said(command, `${JSON.stringify({ ...JSON.parse(FIRST), v: 999 })}\n`);
    expect(err).toMatch(/^cox: record_unreadable: .*version 999/);
    expect(err).toContain(ERROR_CATALOGUE.record_unreadable.caller);
  });
});
