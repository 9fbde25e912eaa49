/**
 * Snapshots and passivation: caches that may be lost, and sessions that cost nothing while they are idle.
 */
import type { Journal, Snapshots, StoredRecord } from '@coxswain/ports';
import { canonicalJson, PARTITIONS } from '@coxswain/protocol';
import { SessionActor } from '@coxswain/turn';
import { expect, test, vi } from 'vitest';
import { loadSession, readTranscript, snapshotBytes } from '../src/mod.ts';
import { ask, call, say } from './fake-model.ts';
import { taking } from './fake-tools.ts';
import { ASKING, refOf, type TestBed, testBed } from './test-bed.ts';

/** A session with a long history and queued messages. */
async function lived(snapshotEvery = 5): Promise<TestBed> {
  const bed = testBed();
  bed.tools = { read: {}, ask: {} };
  bed.models.answers = [ask(call('c1', 'read')), say('done'), ask(call('c2', 'ask'), call('c3', 'read'))];
  await bed.host({ snapshotEvery });
  await bed.start({ permissions: ASKING });
  await bed.send('prompt', 'go on');
  await bed.send('steer', 'think');
  await bed.send('followup', 'and then');
  return bed;
}

const NONE: Snapshots = { get: async () => null, put: async () => {}, summaries: async () => [] };
const only = (bytes: Uint8Array): Snapshots => ({
  get: async () => bytes,
  put: async () => {},
  summaries: async () => [],
});

/** The complete state of a loaded session as text; `whole` with its transcript. */
const stateOf = async (
  bed: TestBed,
  whole: boolean,
  snapshots: Snapshots = bed.bus.snapshots,
  journal: Journal = bed.bus.journal,
) => {
  const loaded = await loadSession({ ...bed.ports(), snapshots, journal }, refOf(), whole);
  const { transcript } = loaded;
  return canonicalJson({
    state: loaded.actor.store(),
    n: loaded.n,
    fence: loaded.fence,
    hash: loaded.hash,
    at: loaded.at,
    cursor: loaded.cursor,
    writer: loaded.writer,
    receipts: loaded.receipts.waiting,
    ...(whole && transcript ? { view: transcript.view(), frame: transcript.frame, answered: transcript.answered } : {}),
  });
};
const ways = [
  ['its state', false],
  ['all of it', true],
] as const;

test.each(ways)(
  'a session loaded from its snapshot equals one loaded from its first record, byte for byte: %s',
  async (_, whole) => {
    const bed = await lived();
    const bytes = await bed.bus.snapshots.get(refOf());
    const { n } = JSON.parse(Buffer.from(bytes as Uint8Array).toString()) as { n: number };
    expect(n).toBeGreaterThan(0);
    expect(await stateOf(bed, whole)).toBe(await stateOf(bed, whole, NONE));
  },
);

test.each(ways)('and after every record in between: %s', async (_, whole) => {
  const bed = await lived();
  const records: StoredRecord[] = [];
  for await (const stored of bed.bus.journal.read(refOf())) records.push(stored);
  const upTo = (count: number) => ({
    ...bed.ports(),
    snapshots: NONE,
    journal: {
      ...bed.bus.journal,
      async *read(_ref: unknown, fence = 0) {
        yield* records.slice(0, count).filter((stored) => stored.fence > fence);
      },
    },
  });
  const folded = await stateOf(bed, whole, NONE);
  for (let count = 1; count <= records.length; count++) {
    const snapshot = snapshotBytes(await loadSession(upTo(count), refOf(), true));
    expect(await stateOf(bed, whole, only(snapshot)), `from record ${count}`).toBe(folded);
  }
});

test('a session that is loaded from its snapshot feeds the machine only with later records', async () => {
  const bed = await lived();
  const folded = await stateOf(bed, true, NONE);
  const bytes = await bed.bus.snapshots.get(refOf());
  const { n } = JSON.parse(Buffer.from(bytes as Uint8Array).toString()) as { n: number };
  const fed: number[] = [];
  const send = vi.spyOn(SessionActor.prototype, 'send');
  try {
    expect(await stateOf(bed, true)).toBe(folded);
    fed.push(...send.mock.calls.map(([, record]) => record));
  } finally {
    send.mockRestore();
  }
  const later = (await bed.records()).map((record) => record.n).filter((record) => record > n);
  expect([...new Set(fed)]).toEqual(later);
});

test.each(ways)('a damaged snapshot is ignored: %s', async (_, whole) => {
  const bed = await lived();
  const folded = await stateOf(bed, whole, NONE);
  const good = JSON.parse(Buffer.from((await bed.bus.snapshots.get(refOf())) as Uint8Array).toString());
  const { turn: left, ...withoutOne } = good.state.context;
  expect(left).toBeDefined();
  const damaged: unknown[] = [
    'not even an object',
    { ...good, v: 99 },
    { ...good, shape: 'of other members', state: { ...good.state, context: { ...good.state.context, turn: 99 } } },
    { ...good, unknown: 1 },
    { ...good, state: {} },
    { ...good, state: { value: good.state.value } },
    { ...good, state: { ...good.state, context: withoutOne } },
    { ...good, state: { ...good.state, value: 'gone' } },
    { ...good, state: { ...good.state, value: { provisioning: 'gone' } } },
    { ...good, hash: '0'.repeat(64) },
    { ...good, n: good.n + 1 },
    { ...good, fence: good.fence - 1 },
  ];
  for (const snapshot of damaged)
    expect(await stateOf(bed, whole, only(Buffer.from(JSON.stringify(snapshot))))).toBe(folded);
  const cut = Buffer.from(JSON.stringify(good)).subarray(0, 100);
  expect(await stateOf(bed, whole, only(cut))).toBe(folded);
  const away = { ...NONE, get: () => Promise.reject(new Error('the store is away')) };
  expect(await stateOf(bed, whole, away)).toBe(folded);
});

async function storedIn(bed: Awaited<ReturnType<typeof lived>>): Promise<StoredRecord[]> {
  const records: StoredRecord[] = [];
  for await (const stored of bed.bus.journal.read(refOf())) records.push(stored);
  return records;
}

/** A journal that has these records only. */
const readingOf = (records: readonly StoredRecord[]) =>
  async function* (_ref: unknown, fence = 0) {
    yield* records.filter((stored) => stored.fence > fence);
  };

test('a record that was changed before its snapshot is detected, whatever its content', async () => {
  const bed = await lived();
  const records: StoredRecord[] = [];
  for await (const stored of bed.bus.journal.read(refOf())) records.push(stored);
  const changed = records.map(({ bytes, fence }, index) => {
    const text = Buffer.from(bytes).toString();
    return { fence, bytes: index === 2 ? Buffer.from(text.replace('"duration_ms":', '"duration_ns":')) : bytes };
  });
  expect(changed[2]?.bytes).not.toEqual(records[2]?.bytes);
  const journal = {
    ...bed.bus.journal,
    read: async function* () {
      yield* changed;
    },
  };
  await expect(loadSession({ ...bed.ports(), journal }, refOf(), true)).rejects.toThrow();
});

test('records that a session is loaded with count towards its next snapshot', async () => {
  const bed = testBed();
  bed.models.answers = [say('one'), say('two')];
  const first = await bed.host({ snapshotEvery: 100 });
  await bed.start();
  first.abandon();
  await bed.host({ snapshotEvery: (await bed.records()).length + 1 });
  expect(await bed.bus.snapshots.get(refOf())).toBeNull();
  await bed.send('prompt', 'again');
  const bytes = await bed.bus.snapshots.get(refOf());
  expect(bytes).not.toBeNull();
});

test.each(ways)(
  'a journal that ends before its snapshot has lost its end, and is not continued: %s',
  async (_, whole) => {
    const bed = await lived();
    const records = await storedIn(bed);
    const journal = { ...bed.bus.journal, read: readingOf(records.slice(0, 2)) };
    await expect(loadSession({ ...bed.ports(), journal }, refOf(), whole)).rejects.toMatchObject({
      code: 'chain_broken',
    });
  },
);

test.each(ways)('records that a replica skipped are read from the leader: %s', async (_, whole) => {
  const bed = await lived();
  const records = await storedIn(bed);
  const folded = await stateOf(bed, whole, NONE);
  for (const hole of [[0], [3], [3, 4], [records.length - 2]]) {
    const journal = { ...bed.bus.journal, read: readingOf(records.filter((_, index) => !hole.includes(index))) };
    expect(await stateOf(bed, whole, NONE, journal), `without ${hole}`).toBe(folded);
    expect(await stateOf(bed, whole, bed.bus.snapshots, journal), `without ${hole}, from the snapshot`).toBe(folded);
    const upTo = await loadSession({ ...bed.ports(), snapshots: NONE }, refOf(), true);
    const transcript = await readTranscript({ ...bed.ports(), journal }, refOf(), upTo);
    expect(transcript.view()).toEqual(upTo.transcript?.view());
  }
});

test.each(ways)('a gap that the leader has too stops the load, at any position: %s', async (_, whole) => {
  const bed = await lived();
  const records = await storedIn(bed);
  const broken = { code: 'chain_broken' };
  for (let hole = 0; hole < records.length - 1; hole++) {
    const left = records.filter((_, index) => index !== hole);
    const journal = {
      ...bed.bus.journal,
      read: readingOf(left),
      firstAfter: async (_ref: unknown, fence: number) => left.find((stored) => stored.fence > fence) ?? null,
    };
    const ports = { ...bed.ports(), journal, snapshots: NONE };
    await expect(loadSession(ports, refOf(), whole), `without record ${hole + 1}`).rejects.toMatchObject(broken);
  }
});

test('a store that is slower than the session gets one snapshot at a time, and the newest one last', async () => {
  const bed = testBed();
  const { snapshots } = bed.bus;
  let [open, most] = [0, 0];
  const slow: Snapshots = {
    ...snapshots,
    put: async (...put) => {
      most = Math.max(most, ++open);
      await bed.time.clock().sleep(1_000);
      await snapshots.put(...put);
      open--;
    },
  };
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  const host = await bed.host({ snapshotEvery: 1, passivateAfterMs: 500, sweepEveryMs: 200 }, { snapshots: slow });
  await bed.start();
  await bed.time.advance(5_000);
  expect(host.live).toBe(0);
  expect(most).toBe(1);
  const bytes = await snapshots.get(refOf());
  expect(JSON.parse(Buffer.from(bytes as Uint8Array).toString()).n).toBe((await bed.records()).length);
});

test('a snapshot that cannot be stored does not affect the session', async () => {
  const bed = testBed();
  const failing = { ...NONE, put: async () => Promise.reject(new Error('full')) };
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host({ snapshotEvery: 1 }, { snapshots: failing });
  await bed.start();
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('a snapshot that the store refused is stored at the next passivation', async () => {
  const bed = testBed();
  const { snapshots } = bed.bus;
  let isFull = true;
  const failing: Snapshots = {
    ...snapshots,
    put: async (...put) => {
      if (isFull) throw new Error('full');
      await snapshots.put(...put);
    },
  };
  const host = await bed.host({ snapshotEvery: 1, passivateAfterMs: 3_000, sweepEveryMs: 500 }, { snapshots: failing });
  await bed.start();
  expect(await snapshots.get(refOf())).toBeNull();
  isFull = false;
  await bed.time.advance(5_000);
  expect(host.live).toBe(0);
  const bytes = await snapshots.get(refOf());
  expect(JSON.parse(Buffer.from(bytes as Uint8Array).toString()).n).toBe((await bed.records()).length);
});

test('an idle session leaves memory after its time, and a command wakes it', async () => {
  const bed = testBed();
  const host = await bed.host({ passivateAfterMs: 30_000, sweepEveryMs: 5_000 });
  await bed.start();
  await bed.time.advance(25_000);
  expect(host.live).toBe(1);
  await bed.time.advance(15_000);
  expect(host.live).toBe(0);
  expect(await bed.bus.snapshots.get(refOf())).not.toBeNull();
  expect(await host.status(refOf())).toMatchObject({ state: 'stopped', run: 1 });
  await bed.send('prompt', 'again');
  expect(host.live).toBe(1);
  // No other host owned it: it needs no new epoch.
  expect((await bed.records()).map(({ epoch }) => epoch).every((epoch) => epoch === 1)).toBe(true);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('an idle session in memory has no running machine, a working one has', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(300_000) } };
  bed.models.answers = [say('one'), ask(call('c1', 'slow')), say('two')];
  await bed.host({ passivateAfterMs: 3_600_000, sweepEveryMs: 5_000 });
  await bed.start();
  const rest = vi.spyOn(SessionActor.prototype, 'releaseMemory');
  try {
    await bed.time.advance(5_100);
    expect(rest).toHaveBeenCalledTimes(1);
    await bed.send('prompt', 'again');
    await bed.time.advance(20_000);
    expect(rest).toHaveBeenCalledTimes(1);
  } finally {
    rest.mockRestore();
  }
  await bed.time.advance(300_000);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('idle sessions leave memory concurrently, and nothing remains of them: neither in the host nor as a note', async () => {
  const bed = testBed();
  bed.tools = { ask: {} };
  const slow = {
    ...bed.bus.snapshots,
    put: async (...put: Parameters<Snapshots['put']>) => {
      await bed.time.clock().sleep(1_000);
      await bed.bus.snapshots.put(...put);
    },
  };
  const host = await bed.host({ passivateAfterMs: 3_000, sweepEveryMs: 500 }, { snapshots: slow });
  const ids = Array.from({ length: 64 }, (_, i) => `s${i}`);
  for (const [index, session] of ids.entries()) {
    // Every second one has a pending approval.
    bed.models.answers = [index % 2 === 0 ? say('done') : ask(call('c1', 'ask'))];
    await bed.start({ permissions: ASKING }, { session });
  }
  const noted = async () => {
    const notes = await Promise.all(Array.from({ length: PARTITIONS }, (_, p) => bed.bus.active.list(p)));
    return notes.flat().length;
  };
  expect([host.live, await noted()]).toEqual([64, 64]);
  await bed.time.advance(3_500 + 2 * 1_000 + 100);
  expect([host.live, await noted()]).toEqual([0, 0]);
});

test('a parked approval needs no memory; the decision wakes the session and the call runs', async () => {
  const bed = testBed();
  bed.tools = { ask: {} };
  bed.models.answers = [ask(call('c1', 'ask')), say('done')];
  const host = await bed.host();
  await bed.start({ permissions: ASKING });
  await bed.time.advance(60_000);
  expect(host.live).toBe(0);
  expect((await host.status(refOf()))?.approvals).toMatchObject([{ call_id: 'c1', tool: 'ask' }]);
  await bed.send('approve', { call_id: 'c1', decision: 'allow' });
  expect(bed.toolSource.runs).toHaveLength(1);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('a session that gets work while its snapshot is written stays', async () => {
  const bed = testBed();
  const { snapshots } = bed.bus;
  const slow = {
    ...snapshots,
    put: async (...put: Parameters<typeof snapshots.put>) => {
      await bed.time.clock().sleep(1_000);
      await snapshots.put(...put);
    },
  };
  bed.models.answers = [say('one'), say('two', { delayMs: 5_000 })];
  const host = await bed.host({ passivateAfterMs: 3_000, sweepEveryMs: 500 }, { snapshots: slow });
  await bed.start();
  await bed.time.advance(3_700);
  await bed.send('prompt', 'again');
  await bed.time.advance(2_000);
  expect(host.live).toBe(1);
  await bed.time.advance(5_000);
  expect((await bed.lines()).filter((line) => /^(owned|agent_end)/.test(line))).toEqual([
    'agent_end end_turn',
    'agent_end end_turn',
  ]);
});

test('RUNNER-8: a receipt subject is forgotten after the delivery was reported', async () => {
  const bed = testBed();
  bed.models.answers = [say('one', { delayMs: 100 }), say('two')];
  await bed.host();
  await bed.start();
  const id = await bed.send('steer', 'listen');
  await bed.time.advance(60_000);
  expect(bed.told(id)).toEqual(['accepted', 'delivered iteration_end']);
  const snapshot = Buffer.from((await bed.bus.snapshots.get(refOf())) as Uint8Array).toString();
  expect(JSON.parse(snapshot).receipts).toEqual({});
});

test('a session with running work stays', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(300_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  const host = await bed.host();
  await bed.start();
  await bed.time.advance(290_000);
  expect(host.live).toBe(1);
  await bed.time.advance(20_000);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('tools of a passivated session are closed', async () => {
  const bed = testBed();
  bed.tools = { ask: {} };
  bed.models.answers = [ask(call('c1', 'ask')), say('done')];
  await bed.host();
  await bed.start({ permissions: ASKING });
  expect(bed.toolSource.openNow).toBe(1);
  await bed.time.advance(60_000);
  expect(bed.toolSource.openNow).toBe(0);
});

test('a suspended session sleeps through a passivation and a restart, and is resumed', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  bed.tools = { read: { run: taking(100) } };
  const first = await bed.host();
  await bed.start();
  await bed.send('suspend', { reason: 'lunch' });
  await bed.time.advance(60_000);
  expect(first.live).toBe(0);
  await first.stop();
  const second = await bed.host();
  expect((await second.status(refOf()))?.state).toEqual({ suspended: 'parked' });
  await bed.send('resume');
  await bed.time.advance(1_000);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});
