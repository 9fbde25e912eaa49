/**
 * Journals of other releases: another record version, or another machine version.
 */
import { createParkTool } from '@coxswain/adapter-tools';
import type { Journal } from '@coxswain/ports';
import { canonicalJson, type Json, RECORD_VERSION, type Upcast } from '@coxswain/protocol';
import { MACHINE_VERSION } from '@coxswain/turn';
import { describe, expect, test } from 'vitest';
import { replayJournal, sha256Hex } from '../src/mod.ts';
import { ask, call, say } from './fake-model.ts';
import { ASKING, refOf, type TestBed, testBed } from './test-bed.ts';

type Raw = { [member: string]: Json } & { prev_hash: string; n: number; events: { [member: string]: Json }[] };

/** A session that has ended, with a large field in it. */
async function ended(): Promise<TestBed> {
  const bed = testBed();
  bed.tools = { read: {}, ask: {} };
  bed.models.answers = [ask(call('c1', 'read'), call('c2', 'ask')), say('done'), say('more')];
  await bed.host();
  await bed.start({ permissions: ASKING, prompt: 'word '.repeat(30_000) });
  await bed.send('approve', { call_id: 'c2', decision: 'allow' });
  return bed;
}

/** A journal in the form of an earlier release: each record changed, and the chain rebuilt. */
function remade(records: readonly Uint8Array[], change: (raw: Raw) => object): Uint8Array[] {
  let prev_hash: string | undefined;
  return records.map((bytes) => {
    const raw = JSON.parse(Buffer.from(bytes).toString('utf8')) as Raw;
    const bytesThen = Buffer.from(canonicalJson({ ...change(raw), ...(prev_hash ? { prev_hash } : {}) }), 'utf8');
    prev_hash = sha256Hex(bytesThen);
    return bytesThen;
  });
}

describe('records of an earlier shape', () => {
  const EARLIER = RECORD_VERSION - 1;
  const earlier = ({ attempt, ...raw }: Raw) => ({ ...raw, by: attempt as Json, v: EARLIER });
  const upcasts: ReadonlyMap<number, Upcast> = new Map([[EARLIER, ({ by, ...raw }) => ({ ...raw, attempt: by })]]);

  test('replay by content, and chain by their stored bytes', async () => {
    const bed = await ended();
    const records = remade(await bed.bytes(), earlier);
    const { blobs } = bed.bus;
    expect(await replayJournal(records, blobs, { upcasts })).toEqual({ records: records.length, sessionId: 's1' });
    await expect(replayJournal(records, blobs)).rejects.toMatchObject({ code: 'record_unreadable' });
  });

  test('may precede records of the present shape', async () => {
    const bed = await ended();
    const records = remade(await bed.bytes(), (raw) => (raw.n <= 3 ? earlier(raw) : raw));
    expect((await replayJournal(records, bed.bus.blobs, { upcasts })).records).toBe(records.length);
  });

  test('diverge on changed content, and on bytes that break the chain', async () => {
    const bed = await ended();
    const { blobs } = bed.bus;
    const records = remade(await bed.bytes(), (raw) => earlier(raw.n === 3 ? { ...raw, state: 'stopped' } : raw));
    await expect(replayJournal(records, blobs, { upcasts })).rejects.toMatchObject({ n: 3, path: '/state' });

    const sound = remade(await bed.bytes(), earlier);
    const spaced = sound.map((bytes, index) => (index === 2 ? Buffer.concat([bytes, Buffer.from(' ')]) : bytes));
    await expect(replayJournal(spaced, blobs, { upcasts })).rejects.toMatchObject({ code: 'replay_diverged', n: 3 });
    const other = sound.map((bytes, index) =>
      index === 2 ? Buffer.from(Buffer.from(bytes).toString('utf8').replace('"by":"', '"by":"x')) : bytes,
    );
    await expect(replayJournal(other, blobs, { upcasts })).rejects.toMatchObject({ n: 4, path: '/prev_hash' });
  });
});

describe('records of a later shape', () => {
  const HOUR = 3_600_000;

  /** The journal as read by an earlier release, which does not know the version of the records. */
  function asEarlierHost(bed: TestBed): Journal {
    const later = (bytes: Uint8Array) =>
      Buffer.from(
        Buffer.from(bytes)
          .toString('utf8')
          .replace(/"v":\d+}$/, `"v":${RECORD_VERSION + 1}}`),
        'utf8',
      );
    const { journal } = bed.bus;
    return {
      append: (...given) => bed.journal.append(...given),
      firstAfter: (...given) => journal.firstAfter(...given),
      sessions: (...given) => journal.sessions(...given),
      sessionsOf: (...given) => journal.sessionsOf(...given),
      async *read(...given) {
        for await (const stored of journal.read(...given)) yield { ...stored, bytes: later(stored.bytes) };
      },
      async last(...given) {
        const stored = await journal.last(...given);
        return stored && { ...stored, bytes: later(stored.bytes) };
      },
    };
  }

  test('are left unchanged by a host that cannot read them; the host that can continues, also after a lost timer', async () => {
    const bed = testBed();
    bed.models.answers = [ask(call('c1', 'park', { for_ms: HOUR })), say('awake')];
    const options = { passivateAfterMs: 1_000, sweepEveryMs: 500 };
    const tools = createParkTool();
    const later = await bed.host(options, { tools });
    await bed.start();
    await bed.time.advance(5_000);
    await later.stop();
    const before = await bed.bytes();

    const earlier = await bed.host(options, { tools, journal: asEarlierHost(bed) });
    const id = await bed.send('steer', 'hello');
    expect(bed.told(id)).toEqual(['rejected record_unreadable']);
    expect(bed.receipts.at(-1)?.message).toContain(`is of version ${RECORD_VERSION + 1}`);
    // The timer fires at the host that cannot use it.
    await bed.time.advance(2 * HOUR);
    expect(await bed.bytes()).toEqual(before);
    await earlier.stop();

    await bed.host(options, { tools });
    await bed.time.advance(5_000);
    expect(await bed.eventsOf('resumed')).toMatchObject([{ cause: 'timeout' }]);
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });
});

describe('a journal of another machine version', () => {
  const OTHER = MACHINE_VERSION + 6;
  const madeByOther = ({ cursor: _, ...raw }: Raw): Raw => ({
    ...raw,
    events: raw.events.map((event) => (event.type === 'agent_start' ? { ...event, machine_version: OTHER } : event)),
  });

  test('replays if this machine is known to decide in the same way, and is rejected by its version otherwise', async () => {
    const bed = await ended();
    const records = remade(await bed.bytes(), madeByOther);
    const { blobs } = bed.bus;
    const machines = new Set([MACHINE_VERSION, OTHER]);
    expect((await replayJournal(records, blobs, { machines })).records).toBe(records.length);
    const begins = (await bed.records()).find(({ events }) => events.some(({ type }) => type === 'agent_start'))?.n;
    await expect(replayJournal(records, blobs)).rejects.toMatchObject({
      code: 'machine_version_unknown',
      n: begins,
      version: OTHER,
      message: `record ${begins} starts a run of machine version ${OTHER}; this release replays version ${MACHINE_VERSION}`,
    });
  });

  /** Another bus with that journal and an unread inbox. */
  async function elsewhere(records: readonly Uint8Array[], from: TestBed): Promise<TestBed> {
    const bed = testBed();
    bed.models.answers = from.models.answers;
    let fence = 0;
    for (const bytes of records) {
      const stored = await bed.bus.journal.append(refOf(), bytes, fence);
      if (stored.status !== 'stored') throw new Error(stored.status);
      fence = stored.fence;
    }
    const { sha256, bytes } = await largeField(from);
    await bed.bus.blobs.put(sha256, bytes);
    await bed.host();
    return bed;
  }

  async function largeField(bed: TestBed) {
    const sha256 = sha256Hex('word '.repeat(30_000));
    return { sha256, bytes: (await bed.bus.blobs.get(sha256)) as Uint8Array };
  }

  test('continues if its events lead this machine to the same states', async () => {
    const from = await ended();
    const bed = await elsewhere(remade(await from.bytes(), madeByOther), from);
    const id = await bed.send('prompt', 'and now');
    expect(bed.told(id)).toContain('accepted');
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
    // It is not a journal of this machine alone, and would not replay.
    bed.forget('s1');
  });

  test.each<[what: string, change: (raw: Raw) => object]>([
    ['lead elsewhere', () => ({ state: 'failed' })],
    // A second end of the run: this machine has no transition for it.
    ['cannot be applied', ({ events }) => ({ events: [...events, ...events.slice(-1)] })],
  ])('is rejected by its version if its events %s', async (_what, change) => {
    const from = await ended();
    const records = await from.bytes();
    const astray = (raw: Raw) => madeByOther(raw.n === records.length ? { ...raw, ...change(raw) } : raw);
    const bed = await elsewhere(remade(records, astray), from);
    const id = await bed.send('prompt', 'and now');
    expect(bed.told(id)).toEqual(['rejected machine_version_unknown']);
    expect(bed.receipts.at(-1)?.message).toContain(`machine version ${OTHER} wrote it`);
    bed.forget('s1');
  });
});
