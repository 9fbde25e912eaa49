/**
 * Exports: the closing line proves the last record, which the hash chain alone does not.
 */
import { canonicalJson, closingLine, isErrorCode, type Json } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { ExportedJournal, replayJournal, sha256Hex } from '../src/mod.ts';
import { say } from './fake-model.ts';
import { testBed } from './test-bed.ts';

type Raw = { [key: string]: Json } & { input: { [key: string]: Json }; events: { [key: string]: Json }[] };

/** A session whose newest record is a steering message with an awaited receipt. */
async function records(): Promise<Uint8Array[]> {
  const bed = testBed();
  bed.models.answers = [say('done')];
  await bed.host();
  await bed.start();
  await bed.send('remind', 'for later');
  return bed.bytes();
}

const endOf = (all: readonly Uint8Array[]) =>
  Buffer.from(closingLine({ hash: sha256Hex(all.at(-1) as Uint8Array), records: all.length }));

/** The error code of the replay of an export; null if it replays. */
async function codeOf(lines: readonly Uint8Array[]): Promise<{ code: string | null; isTailProven: boolean }> {
  const exported = new ExportedJournal(
    (async function* () {
      yield* lines;
    })(),
  );
  const code = await replayJournal(exported.records(), exported).then(
    () => null,
    (error: { code: string }) => error.code,
  );
  return { code, isTailProven: exported.isTailProven };
}

const edited = (bytes: Uint8Array, edit: (raw: Raw) => void): Uint8Array => {
  const raw = JSON.parse(Buffer.from(bytes).toString('utf8')) as Raw;
  edit(raw);
  return Buffer.from(canonicalJson(raw));
};

test('an export replays with its closing line, and without it the tail is unproven', async () => {
  const all = await records();
  expect(await codeOf([...all, endOf(all)])).toEqual({ code: null, isTailProven: true });
  expect(await codeOf(all)).toEqual({ code: null, isTailProven: false });
});

describe('the closing line shows what replay cannot see:', () => {
  const unseen: [what: string, edit: (raw: Raw) => void][] = [
    ['another inbox position', ({ cursor }) => Object.assign(cursor as object, { seq: 999 })],
    ['another receiver of receipts', ({ input }) => Object.assign(input, { receipt_to: '_INBOX.forged' })],
    ['another writer', (raw) => Object.assign(raw, { attempt: 'forged' })],
    [
      'input and event, changed alike',
      ({ input, events }) => {
        Object.assign(input.body as object, { body: 'forged' });
        for (const event of events) if ('body' in event) event.body = 'forged';
      },
    ],
  ];

  test.each(unseen)('%s', async (_what, edit) => {
    const all = await records();
    const forged = [...all.slice(0, -1), edited(all.at(-1) as Uint8Array, edit)];
    expect(forged.at(-1)).not.toEqual(all.at(-1));
    expect((await codeOf(forged)).code).toBe(null);
    expect((await codeOf([...forged, endOf(all)])).code).toBe('export_end_mismatch');
  });

  test('any number of records cut off at the end', async () => {
    const all = await records();
    for (let count = 0; count < all.length; count++)
      expect((await codeOf([...all.slice(0, count), endOf(all)])).code).toBe('export_end_mismatch');
  });
});

test('any changed byte of the newest record or of the closing line ends with a code', async () => {
  // The first record alone is a journal too, and replays quickly.
  const all = (await records()).slice(0, 1);
  const lines = [...all, endOf(all)];
  for (const at of [lines.length - 2, lines.length - 1]) {
    const line = lines[at] as Uint8Array;
    for (let index = 0; index < line.length; index++) {
      const changed = Uint8Array.from(line);
      changed[index] = (changed[index] as number) ^ 1;
      const { code } = await codeOf(lines.map((bytes, n) => (n === at ? changed : bytes)));
      expect(isErrorCode(code ?? ''), `byte ${index} of line ${at + 1}: ${code}`).toBe(true);
    }
  }
});

test('lines after the closing line and a partial closing line are rejected', async () => {
  const all = await records();
  const end = endOf(all);
  for (const lines of [
    [...all, end, end],
    [...all, end, all.at(-1) as Uint8Array],
    [...all, end.subarray(0, 20)],
    [...all, Buffer.from(end.toString().replace(':', ': '))],
  ])
    expect((await codeOf(lines)).code).toBe('export_line_invalid');
});
