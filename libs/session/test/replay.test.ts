/**
 * Replay: the same journal gives the same bytes, and a changed one stops at the changed record.
 */
import { canonicalJson, type Json } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { ReplayDivergedError, replayJournal, sha256Hex } from '../src/mod.ts';
import { hook } from './fake-hooks.ts';
import { ask, call, say } from './fake-model.ts';
import { ASKING, type TestBed, testBed } from './test-bed.ts';

type Raw = Record<string, Json> & { n: number; events: { [key: string]: Json }[]; input: { [key: string]: Json } };

/** A journal with many features, as bytes. */
async function journal(): Promise<{ bed: TestBed; records: Uint8Array[] }> {
  const bed = testBed();
  bed.tools = { read: {}, ask: {} };
  bed.hooks.registrations = [hook('PostToolUse', 'look')];
  bed.models.answers = [ask(call('c1', 'read'), call('c2', 'ask')), say('done')];
  await bed.host();
  await bed.start({ permissions: ASKING });
  await bed.send('steer', 'think');
  await bed.send('approve', { call_id: 'c2', decision: 'allow' });
  await bed.send('prompt', { body: 'again', surprise: 1 });
  return { bed, records: await bed.bytes() };
}

const parse = (bytes: Uint8Array) => JSON.parse(Buffer.from(bytes).toString('utf8')) as Raw;
const bytesOf = (value: unknown) => Buffer.from(canonicalJson(value), 'utf8');

/** The position at which the replay of a changed journal stops. */
async function stops(records: readonly Uint8Array[]): Promise<ReplayDivergedError> {
  try {
    await replayJournal(records);
  } catch (error) {
    if (error instanceof ReplayDivergedError) return error;
    throw error;
  }
  throw new Error('the replay did not notice');
}

/** The journal with one record changed. */
function changed(records: readonly Uint8Array[], n: number, change: (raw: Raw) => unknown): Uint8Array[] {
  return records.map((bytes, index) => (index === n - 1 ? bytesOf(change(parse(bytes))) : bytes));
}

test('a journal replays byte for byte, also from a stream', async () => {
  const { records } = await journal();
  const stream = (async function* () {
    yield* records;
  })();
  expect(await replayJournal(stream)).toEqual({ records: records.length, sessionId: 's1' });
  expect(await replayJournal([])).toEqual({ records: 0, sessionId: '' });
});

test('so does every prefix of it', async () => {
  const { records } = await journal();
  for (let count = 1; count <= records.length; count++)
    expect((await replayJournal(records.slice(0, count))).records).toBe(count);
});

describe('the replay stops with replay_diverged', () => {
  test('at a record with a changed event, whichever record it is', async () => {
    const { records } = await journal();
    for (let n = 1; n <= records.length; n++) {
      const tampered = changed(records, n, (raw) => ({ ...raw, events: raw.events.slice(1) }));
      expect(await stops(tampered), `record ${n}`).toMatchObject({ n, code: 'replay_diverged' });
    }
  });

  test('at a record with an event too many', async () => {
    const { records } = await journal();
    const n = 4;
    const tampered = changed(records, n, (raw) => ({ ...raw, events: [...raw.events, raw.events[0]] }));
    expect((await stops(tampered)).n).toBe(n);
  });

  test('at a record whose state or open effects were changed', async () => {
    const { records } = await journal();
    expect(await stops(changed(records, 3, (raw) => ({ ...raw, state: 'failed' })))).toMatchObject({
      n: 3,
      path: '/state',
    });
    expect(await stops(changed(records, 3, (raw) => ({ ...raw, effects_open: ['9-9'] })))).toMatchObject({
      n: 3,
      path: expect.stringMatching(/^\/effects_open/),
    });
    expect((await stops(changed(records, 3, (raw) => ({ ...raw, epoch: 7 })))).n).toBe(3);
  });

  test('at a record with a changed input, if its events follow from it', async () => {
    const { records } = await journal();
    const n = records.findIndex((bytes) => parse(bytes).input.verb === 'steer') + 1;
    const body = { body: 'something else', mode: 'finish_step' };
    const tampered = changed(records, n, (raw) => ({ ...raw, input: { ...raw.input, body } }));
    expect(await stops(tampered)).toMatchObject({ n, path: '/events/0/body' });
  });

  test('at a record whose input cannot cause its events', async () => {
    const { records } = await journal();
    const tampered = changed(records, 2, (raw) => ({ ...raw, input: { ...raw.input, effect_id: '7-7' } }));
    expect((await stops(tampered)).n).toBe(2);
  });

  test('just after a record with a change that has no consequence: the hash chain shows it', async () => {
    const { records } = await journal();
    const at = changed(records, 3, (raw) => ({ ...raw, at: '2031-01-01T00:00:00.000Z' }));
    expect(await stops(at)).toMatchObject({ n: 4, path: '/prev_hash' });
    const attempt = changed(records, 3, (raw) => ({ ...raw, attempt: 'someone' }));
    expect(await stops(attempt)).toMatchObject({ n: 4, path: '/prev_hash' });
  });

  test('at a removed record', async () => {
    const { records } = await journal();
    for (let n = 1; n < records.length; n++) {
      const tampered = records.filter((_bytes, index) => index !== n - 1);
      expect((await stops(tampered)).n, `without record ${n}`).toBe(n);
    }
  });

  test('at a repeated record, and at two swapped records', async () => {
    const { records } = await journal();
    const repeated = [...records.slice(0, 3), records[2] as Uint8Array, ...records.slice(3)];
    expect((await stops(repeated)).n).toBe(4);
    const swapped = [...records];
    [swapped[2], swapped[3]] = [records[3] as Uint8Array, records[2] as Uint8Array];
    expect((await stops(swapped)).n).toBe(3);
  });

  test('at a broken chain, and at a chain forged from there on', async () => {
    const { records } = await journal();
    const broken = changed(records, 3, (raw) => ({ ...raw, prev_hash: 'f'.repeat(64) }));
    expect(await stops(broken)).toMatchObject({ n: 3, path: '/prev_hash' });
    // A changed event with all later hashes fixed is found at the event.
    let prev = '';
    const forged = records.map((bytes, index) => {
      const raw = parse(bytes);
      const first = raw.events[0] as Record<string, Json>;
      const events = index === 3 ? [{ ...first, text: 'forged' }, ...raw.events.slice(1)] : raw.events;
      const mended = bytesOf(index === 0 ? raw : { ...raw, events, prev_hash: prev });
      prev = sha256Hex(mended);
      return mended;
    });
    expect((await stops(forged)).n).toBe(4);
  });

  test('at a record of another session', async () => {
    const { records } = await journal();
    const tampered = changed(records, 3, (raw) => ({ ...raw, session_id: 's2' }));
    expect(await stops(tampered)).toMatchObject({ n: 3, path: '/session_id' });
  });

  test('at a record with the same value in other bytes', async () => {
    const { records } = await journal();
    const spelled = (n: number, spell: (bytes: Uint8Array) => string) =>
      records.map((bytes, index) => (index === n - 1 ? Buffer.from(spell(bytes), 'utf8') : bytes));
    const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('utf8');
    const spellings: ((bytes: Uint8Array) => string)[] = [
      (bytes) => `${text(bytes)} `,
      (bytes) => JSON.stringify(parse(bytes), null, 1),
      (bytes) => text(bytes).replace('"attempt"', '"\\u0061ttempt"'),
      (bytes) => text(bytes).replace('"n":3', '"n":3.0'),
      (bytes) => JSON.stringify(Object.fromEntries(Object.entries(parse(bytes)).reverse())),
    ];
    for (const spell of spellings) expect((await stops(spelled(3, spell))).n, spell.toString()).toBe(3);
  });

  test('at an unreadable record', async () => {
    const { records } = await journal();
    const garbage = (bytes: Uint8Array) => [...records.slice(0, 2), bytes, ...records.slice(3)];
    expect((await stops(garbage(Buffer.from('')))).n).toBe(3);
    expect((await stops(garbage(Buffer.from('{')))).n).toBe(3);
    expect((await stops(garbage(Buffer.from([0xff, 0xfe])))).n).toBe(3);
    expect((await stops(garbage((records[2] as Uint8Array).slice(0, 50)))).n).toBe(3);
    expect((await stops(changed(records, 3, (raw) => ({ ...raw, unknown: 1 })))).n).toBe(3);
    expect((await stops(changed(records, 3, (raw) => ({ ...raw, events: [{ type: 'no_such_event' }] })))).n).toBe(3);
  });

  test.each<[string, (records: readonly Uint8Array[]) => Uint8Array[], string, number]>([
    ['whose beginning was cut off', (all) => all.slice(3), 'record 1 is missing: the journal starts with record 4', 1],
    ['with a gap', (all) => [...all.slice(0, 2), ...all.slice(3)], 'record 3 is missing: record 4 follows record 2', 3],
    [
      'with a record twice',
      (all) => [...all.slice(0, 3), ...all.slice(2)],
      'record 4 should follow record 3, but record 3 is repeated there',
      4,
    ],
    [
      'with a torn line',
      (all) => [...all.slice(0, 2), (all[2] as Uint8Array).slice(0, 50)],
      'record 3 cannot be read: ',
      3,
    ],
  ])('at a journal %s, and says so plainly', async (_what, edited, message, n) => {
    const { records } = await journal();
    const error = await stops(edited(records));
    expect(error).toMatchObject({ n });
    expect(error.message.slice(0, message.length)).toBe(message);
    expect(error.message).not.toContain('recomputed');
  });

  test('at a repeated journal, and at two joined journals', async () => {
    const { records } = await journal();
    const again = records.length + 1;
    await expect(replayJournal([...records, ...records])).rejects.toThrow(
      `record ${again} should follow record ${again - 1}, but record 1 is repeated there`,
    );
    const other = changed(records, 2, (raw) => ({ ...raw, session_id: 's2' }));
    await expect(replayJournal(other)).rejects.toThrow('record 2 belongs to session s2; earlier records belong to s1');
  });

  test('and names the expected and the actual value', async () => {
    const { records } = await journal();
    const tampered = changed(records, 3, (raw) => ({ ...raw, state: 'failed' }));
    await expect(replayJournal(tampered)).rejects.toThrow(
      /^record 3 differs at \/state: expected "failed", recomputed \{"function_/,
    );
  });
});

test('a record of a later release is not a divergence: the error names the release that can read it', async () => {
  const { records } = await journal();
  await expect(replayJournal(changed(records, 3, (raw) => ({ ...raw, v: 2 })))).rejects.toMatchObject({
    code: 'record_unreadable',
    message: expect.stringMatching(/^record 3 .*version 2/),
  });
});

test('a missing blob is named in the error, a changed blob diverges', async () => {
  const bed = testBed();
  await bed.host();
  await bed.start({ prompt: 'word '.repeat(30_000) });
  const records = await bed.bytes();
  await expect(replayJournal(records)).rejects.toMatchObject({ code: 'blob_missing' });
  const other = Buffer.from('other '.repeat(30_000));
  await expect(replayJournal(records, { get: async () => other })).rejects.toMatchObject({
    code: 'replay_diverged',
    n: 1,
  });
});
