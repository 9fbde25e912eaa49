/**
 * Imports: an export becomes a session completely or not at all, and continues like any session.
 */
import { BOUNDS, blobLine, canonicalJson, closingLine, type Json, sessionRef } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { tombstoneOf } from '../src/journal/tombstone-of.ts';
import { importJournal, linesOf, replayJournal, sha256Hex } from '../src/mod.ts';
import { ask, call, say } from './fake-model.ts';
import { ASKING, type TestBed, testBed } from './test-bed.ts';

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('utf8');
const bytesOf = (lines: readonly string[]) => lines.map((line) => Buffer.from(line, 'utf8'));

/** A session that has ended, as the lines of its export; and a bed with nothing on it. */
async function exported(prompt = 'hello'): Promise<{ lines: string[]; bed: TestBed; from: TestBed }> {
  const from = testBed();
  from.tools = { read: {}, ask: {} };
  from.models.answers = [ask(call('c1', 'read'), call('c2', 'ask')), say('done')];
  await from.host();
  await from.start({ permissions: ASKING, prompt });
  await from.send('approve', { call_id: 'c2', decision: 'allow' });
  const bed = testBed();
  bed.tools = from.tools;
  bed.models.answers = [...from.models.answers, say('and more')];
  return { lines: (await from.bytes()).map(text), bed, from };
}

function importing(bed: TestBed, lines: readonly string[], as?: string) {
  const read = async function* () {
    yield* bytesOf(lines);
  };
  const ports = { journal: bed.journal, blobs: bed.bus.blobs, clock: bed.time.clock() };
  return importJournal(ports, { lines: read, tenant: 'default', as });
}

type Raw = { [key: string]: Json } & { n: number; input: { [key: string]: Json } };
const changed = (lines: readonly string[], n: number, change: (raw: Raw) => object) =>
  lines.map((line, index) => (index === n - 1 ? canonicalJson(change(JSON.parse(line) as Raw)) : line));

test('an import keeps its id and its records, without what concerns the old bus', async () => {
  const { lines, bed } = await exported();
  const { ref, records, isTailProven } = await importing(bed, lines);
  expect([ref.sessionId, records, isTailProven]).toEqual(['s1', lines.length, false]);
  const own = await bed.records();
  expect(own.map(({ at, attempt, state, n }) => ({ at, attempt, state, n }))).toEqual(
    lines.map((line) => JSON.parse(line) as Raw).map(({ at, attempt, state, n }) => ({ at, attempt, state, n })),
  );
  expect(own.filter(({ cursor }) => cursor)).toEqual([]);
  expect(own.some(({ input }) => 'receipt_to' in input)).toBe(false);
  expect(own[0]?.events[0]).toMatchObject({
    type: 'session_copied',
    how: 'import',
    session: 's1',
    up_to: lines.length,
  });
  expect((await replayJournal(await bed.bytes())).records).toBe(lines.length);
});

test('an imported session continues with a prompt, and can be forked', async () => {
  const { lines, bed } = await exported();
  await importing(bed, lines);
  await bed.host({ name: 'elsewhere' });
  await bed.send('prompt', 'and now');
  expect((await bed.lines()).slice(-2)).toEqual(['tools_closed', 'agent_end end_turn']);
  expect(await bed.lines()).toContain('owned 2');
  await bed.send('start', { fork: { session: 's1', n: 3 } }, { session: 'f1' });
  expect((await bed.eventsOf('session_copied', 'f1'))[0]).toMatchObject({ how: 'fork', before: [{ session: 's1' }] });
});

test('a closing line proves the end of the export', async () => {
  const { lines, bed } = await exported();
  const hash = sha256Hex(lines.at(-1) as string);
  const { records, isTailProven } = await importing(bed, [...lines, closingLine({ hash, records: lines.length })]);
  expect([records, isTailProven]).toEqual([lines.length, true]);
});

test('under another id it is another session: its first owner takes it like a fork', async () => {
  const { lines, bed } = await exported();
  await importing(bed, lines, 'mine');
  expect(await bed.bytes()).toEqual([]);
  await bed.host();
  await bed.send('prompt', 'and now', { session: 'mine' });
  const events = await bed.lines('mine');
  expect(events[0]).toBe(`session_copied import s1 ${lines.length}`);
  expect(events).toContain('owned 2 after copy');
  expect(events.at(-1)).toBe('agent_end end_turn');
});

test('a session with an open run rests, also when its host compares journals with notes', async () => {
  const { lines, bed } = await exported();
  const open = lines.findIndex((line) => (JSON.parse(line) as { effects_open: unknown[] }).effects_open.length > 0);
  await importing(bed, lines.slice(0, open + 1));
  await bed.host({ name: 'elsewhere' });
  await bed.time.advance(60_000);
  expect(await bed.records()).toHaveLength(open + 1);
});

test('large fields come with it', async () => {
  const { lines, bed, from } = await exported('word '.repeat(30_000));
  await expect(importing(bed, lines)).rejects.toMatchObject({ code: 'blob_missing', line: 1 });
  const sha256 = sha256Hex(Buffer.from('word '.repeat(30_000)));
  const apart = blobLine({ blob: sha256, text: text((await from.bus.blobs.get(sha256)) as Uint8Array) });
  await importing(bed, [apart, ...lines]);
  expect(await bed.bus.blobs.get(sha256)).not.toBe(null);
  const files = blobLine({ blob: sha256Hex(Buffer.from([255, 0])), base64: Buffer.from([255, 0]).toString('base64') });
  await importing(bed, [apart, files, ...lines], 'again');
  expect(Buffer.from((await bed.bus.blobs.get(sha256Hex(Buffer.from([255, 0])))) ?? [])).toEqual(Buffer.from([255, 0]));
});

/** The last line of the damaged part. */
const LAST = -1;

describe('is refused, naming the line, and nothing is written', () => {
  const cases: [what: string, spoil: (lines: string[]) => string[], code: string, line: number][] = [
    ['a tampered event', (l) => changed(l, 3, (raw) => ({ ...raw, events: [] })), 'replay_diverged', 3],
    [
      'a tampered time, by the record behind it',
      (l) => changed(l, 3, (raw) => ({ ...raw, at: '2031-01-01T00:00:00.000Z' })),
      'chain_broken',
      4,
    ],
    ['other bytes for the same', (l) => l.map((line, i) => (i === 2 ? ` ${line}` : line)), 'replay_diverged', 3],
    ['a missing record', (l) => [...l.slice(0, 2), ...l.slice(3)], 'chain_broken', 3],
    ['a repeated record', (l) => [...l.slice(0, 3), ...l.slice(2)], 'chain_broken', 4],
    ['records in another order', (l) => [l[1] as string, l[0] as string, ...l.slice(2)], 'chain_broken', 1],
    ['a record of another session', (l) => changed(l, 4, (raw) => ({ ...raw, session_id: 's2' })), 'chain_broken', 4],
    ['a torn line', (l) => [...l.slice(0, 2), (l[2] as string).slice(0, 40)], 'record_unreadable', 3],
    ['a foreign line', (l) => [...l.slice(0, 2), 'hello', ...l.slice(2)], 'record_unreadable', 3],
    ['foreign JSON', (l) => ['{"type":"log"}', ...l], 'record_unreadable', 1],
    ['another release’s record', (l) => changed(l, 2, (raw) => ({ ...raw, v: 2 })), 'record_unreadable', 2],
    [
      'another machine’s run',
      (l) => l.map((line) => line.replace(/"machine_version":\d+/, '"machine_version":999')),
      'machine_version_unknown',
      2,
    ],
    ['bytes of another hash', (l) => [blobLine({ blob: '0'.repeat(64), text: 'x' }), ...l], 'export_line_invalid', 1],
    ['what only looks like bytes', (l) => ['{"blob":1}', ...l], 'export_line_invalid', 1],
    ['a line that is too long', (l) => [`{"at":"${'x'.repeat(600_000)}"}`, ...l], 'export_line_invalid', 1],
    [
      'a record that is missing at the end',
      (l) => [...l.slice(0, -1), closingLine({ hash: sha256Hex(l.at(-1) as string), records: l.length })],
      'export_end_mismatch',
      LAST,
    ],
    ['nothing at all', () => [], 'record_unreadable', 0],
  ];

  test.each(cases)('%s', async (_what, spoil, code, line) => {
    const { lines, bed } = await exported();
    const spoilt = spoil([...lines]);
    const at = line === LAST ? spoilt.length : line;
    await expect(importing(bed, spoilt)).rejects.toMatchObject({ code, line: at });
    expect(bed.journal.tried).toEqual([]);
  });

  test.each([1, 5])('line %i, which is too long to be read', async (line) => {
    const { lines, bed } = await exported();
    const input = async function* () {
      for (const earlier of lines.slice(0, line - 1)) yield `${earlier}\n`;
      const chunk = Buffer.alloc(1024 * 1024, 'x');
      for (let read = 0; read <= BOUNDS.exportLineMaxBytes; read += chunk.length) yield chunk;
    };
    const ports = { journal: bed.journal, blobs: bed.bus.blobs, clock: bed.time.clock() };
    await expect(importJournal(ports, { lines: () => linesOf(input()), tenant: 'default' })).rejects.toMatchObject({
      code: 'export_line_invalid',
      line,
      message: expect.stringMatching(`^line ${line}: a line has more than`),
    });
    expect(bed.journal.tried).toEqual([]);
  });

  test('an id that is not free', async () => {
    const { lines, bed } = await exported();
    await importing(bed, lines);
    await expect(importing(bed, lines)).rejects.toMatchObject({ code: 'session_exists' });
    await bed.host();
    await bed.start({}, { session: 'taken' });
    const tried = bed.journal.tried.length;
    await expect(importing(bed, lines, 'taken')).rejects.toMatchObject({ code: 'session_exists' });
    expect(bed.journal.tried).toHaveLength(tried);
  });
});

test('an id of a deleted session is rejected as deleted, also while records precede the tombstone', async () => {
  const { lines, bed } = await exported();
  await importing(bed, lines);
  const end = { n: lines.length, hash: sha256Hex((await bed.bytes()).at(-1) as Uint8Array) };
  const { sealed } = tombstoneOf(sessionRef('s1'), end, { at: '2031-01-01T00:00:00.000Z' });
  const fence = (await bed.journal.last(sessionRef('s1')))?.fence ?? 0;
  await bed.journal.append(sessionRef('s1'), sealed.bytes, fence);
  await expect(importing(bed, lines)).rejects.toMatchObject({
    code: 'session_deleted',
    message: expect.stringMatching(/; use another id$/),
  });
});

describe('one that is broken off', () => {
  async function brokenOff() {
    const { lines, bed } = await exported();
    bed.journal.next = ['none', 'none', 'throws'];
    bed.journal.always = 'throws';
    const failed = expect(importing(bed, lines)).rejects.toMatchObject({ code: 'journal_unavailable' });
    await bed.time.advance(600_000);
    await failed;
    bed.journal.always = 'none';
    expect(await bed.bytes()).toHaveLength(2);
    return { lines, bed };
  }

  test('takes no command, and says why', async () => {
    const { bed } = await brokenOff();
    await bed.host();
    const id = await bed.send('prompt', 'and now');
    expect(bed.told(id)).toEqual(['rejected import_unfinished']);
    expect(await bed.bytes()).toHaveLength(2);
  });

  test('continues where it stopped when it is imported again', async () => {
    const { bed, lines } = await brokenOff();
    await importing(bed, lines);
    await bed.host();
    await bed.send('prompt', 'and now');
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });

  test('does not go on with another journal', async () => {
    const { bed } = await brokenOff();
    const other = await exported('another prompt');
    await expect(importing(bed, other.lines)).rejects.toMatchObject({ code: 'session_exists' });
  });
});

test('an import while a host looks on disturbs neither', async () => {
  const { lines, bed } = await exported();
  await bed.host();
  await importing(bed, lines);
  expect((await bed.records()).map(({ n }) => n)).toEqual(lines.map((_, index) => index + 1));
});

test('under an id that a host has just reported as unknown, it is claimed before the next command', async () => {
  const { lines, bed } = await exported();
  const host = await bed.host({ passivateAfterMs: 60_000 });
  const early = await bed.send('prompt', 'too early', { session: 'mine' });
  expect([bed.told(early)[0], host.live]).toEqual(['rejected session_not_found', 1]);
  await importing(bed, lines, 'mine');
  await bed.send('prompt', 'and now', { session: 'mine' });
  const records = await bed.records('mine');
  expect(records[lines.length]?.input).toMatchObject({ type: 'owned', after_copy: { session: 'mine' } });
  expect(records.filter(({ input }) => input.type === 'owned')).toHaveLength(1);
  expect((await bed.lines('mine')).at(-1)).toBe('agent_end end_turn');
});
