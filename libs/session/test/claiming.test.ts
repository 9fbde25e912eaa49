/**
 * Claims: what the next owner of a session reads before and after it owns the session.
 */
import type { StoredRecord } from '@coxswain/ports';
import { decodeRecord, partitionOf } from '@coxswain/protocol';
import { expect, test, vi } from 'vitest';
import { NoteComparison } from '../src/hosting/compare-notes.ts';
import { HostState } from '../src/hosting/host-state.ts';
import { ChainBrokenError, loadSession, readTranscript } from '../src/mod.ts';
import { ask, call, say } from './fake-model.ts';
import { taking } from './fake-tools.ts';
import { refOf, type TestBed, testBed } from './test-bed.ts';

/** A session of some records, whose host dies while a call runs. */
async function orphaned(bed: TestBed, snapshotEvery: number) {
  bed.tools = { read: {}, slow: { run: taking(1_000) } };
  bed.models.answers = [
    ...Array.from({ length: 8 }, (_, i) => ask(call(`c${i}`, 'read'))),
    ask(call('last', 'slow')),
    say('done'),
  ];
  const host = await bed.host({ snapshotEvery });
  await bed.start();
  host.abandon();
  return (await bed.bytes()).length;
}

/** Requests to the stores of the session in order; reads by their first record. */
function watched(bed: TestBed): string[] {
  const asked: string[] = [];
  const { journal } = bed;
  const read = journal.read.bind(journal);
  journal.read = async function* (ref, fence): AsyncGenerator<StoredRecord, void, undefined> {
    let isFirst = true;
    for await (const stored of read(ref, fence)) {
      if (isFirst) asked.push(`read from ${decodeRecord(stored.bytes).n}`);
      isFirst = false;
      yield stored;
    }
  };
  journal.always = async (append, { bytes }) => {
    asked.push(`append ${decodeRecord(bytes).input.type}`);
    return append();
  };
  return asked;
}

test('the next host owns a session from its snapshot, and reads the transcript afterwards', async () => {
  const bed = testBed();
  const n = await orphaned(bed, 5);
  const asked = watched(bed);
  await bed.host();
  await bed.time.advance(2_000);
  const last = n - (n % 5);
  expect(asked.slice(0, 4)).toEqual([`read from ${last}`, 'append owned', 'read from 1', 'append call_outcome']);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  // The model received all of it.
  const results = bed.models.requests.at(-1)?.messages.filter(({ role }) => role === 'tool');
  expect(results).toHaveLength(9);
});

test('a host that hands a session over stores a snapshot of it: the next host folds no record again', async () => {
  const bed = testBed();
  bed.models.answers = [say('done', { delayMs: 5_000 })];
  const host = await bed.host({ snapshotEvery: 1_000 });
  await bed.start();
  const n = (await bed.bytes()).length;
  await Promise.all([host.stop(), bed.time.advance(1_000)]);
  const asked = watched(bed);
  await bed.host();
  await bed.time.advance(10_000);
  expect(asked.slice(0, 2)).toEqual([`read from ${n}`, 'append owned']);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('without a snapshot it reads the journal once', async () => {
  const bed = testBed();
  await orphaned(bed, 1_000);
  const asked = watched(bed);
  await bed.host();
  await bed.time.advance(2_000);
  expect(asked.filter((line) => line.startsWith('read'))).toEqual(['read from 1']);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('commands that arrive while the transcript is read follow', async () => {
  const bed = testBed();
  await orphaned(bed, 5);
  let reads = 0;
  const read = bed.journal.read.bind(bed.journal);
  bed.journal.read = async function* (ref, fence): AsyncGenerator<StoredRecord, void, undefined> {
    if (++reads === 2) await bed.time.clock('store').sleep(500);
    yield* read(ref, fence);
  };
  await bed.host();
  expect((await bed.lines()).at(-1)).toMatch(/^owned/);
  const id = await bed.send('steer', 'think');
  expect((await bed.lines()).at(-1)).toMatch(/^owned/);
  await bed.time.advance(3_000);
  expect(bed.told(id)).toEqual(['accepted', expect.stringMatching(/^delivered/)]);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('an unavailable journal is retried with back-off', async () => {
  const bed = testBed();
  await orphaned(bed, 5);
  const read = bed.journal.read.bind(bed.journal);
  let isAway = true;
  bed.journal.read = async function* (ref, fence = 0): AsyncGenerator<StoredRecord, void, undefined> {
    if (isAway && fence === 0) throw new Error('the store is away');
    yield* read(ref, fence);
  };
  await bed.host();
  await bed.time.advance(600_000);
  const owned = async () => (await bed.lines()).filter((line) => line.startsWith('owned')).length;
  const tries = await owned();
  expect(tries).toBeGreaterThan(5);
  expect(tries).toBeLessThan(30);
  isAway = false;
  await bed.time.advance(60_000);
  expect(await owned()).toBe(tries + 1);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('a transcript is read only from a journal that reaches the newest record', async () => {
  const bed = testBed();
  await orphaned(bed, 5);
  const session = await loadSession(bed.ports(), refOf(), false);
  expect(session.transcript).toBeNull();
  const whole = await loadSession(bed.ports(), refOf(), true);
  const transcript = await readTranscript(bed.ports(), refOf(), session);
  expect([transcript.view(), transcript.frame]).toEqual([whole.transcript?.view(), whole.transcript?.frame]);

  const records: StoredRecord[] = [];
  for await (const stored of bed.bus.journal.read(refOf())) records.push(stored);
  const journalOf = (stands: readonly StoredRecord[]) => ({
    ...bed.ports(),
    journal: {
      ...bed.bus.journal,
      async *read() {
        yield* stands;
      },
      firstAfter: async (_ref: unknown, fence: number) => stands.find((stored) => stored.fence > fence) ?? null,
    },
  });
  const broken = [records.slice(0, -1), records.slice(1), [...records.slice(0, 3), ...records.slice(4)]];
  for (const stands of broken)
    await expect(readTranscript(journalOf(stands), refOf(), session)).rejects.toThrow(ChainBrokenError);
  const other = { ...session, hash: '0'.repeat(64) };
  await expect(readTranscript(bed.ports(), refOf(), other)).rejects.toThrow('does not lead to');
});

test('a session that a command loads while a claim reads its newest record keeps its own note', async () => {
  const bed = testBed();
  const first = await bed.host();
  await bed.start();
  first.abandon();
  const last = bed.journal.last.bind(bed.journal);
  bed.journal.last = async (ref) => {
    const newest = await last(ref);
    bed.journal.last = last;
    await bed.time.clock('store').sleep(500);
    return newest;
  };
  await bed.host({ passivateAfterMs: 5_000, sweepEveryMs: 500 });
  await bed.send('prompt', 'again');
  expect((await bed.eventsOf('agent_end')).map(({ run }) => run)).toEqual([1, 2]);
  const notes = () => bed.bus.active.list(partitionOf(refOf().sessionId));
  await bed.time.advance(1_000);
  expect(await notes()).toHaveLength(1);
  await bed.time.advance(10_000);
  expect(await notes()).toEqual([]);
});

test('a partition that comes back during its comparison is due again at once', async () => {
  const bed = testBed();
  let reads = 0;
  const journal = {
    async *sessionsOf() {
      reads++;
      if (reads === 1) comparison.makeDue(7);
      yield* [];
    },
  };
  const clock = { ...bed.time.clock(), sleep: async () => {} };
  const { active, log } = bed.ports();
  const held = { partitions: () => new Set([7]), isFree: () => true, openWorkAt: async () => null, claim: () => {} };
  const comparison = new NoteComparison({ active, journal, clock, log }, held, new HostState());
  for (const expected of [1, 2, 2]) {
    await comparison.compareDue();
    expect(reads).toBe(expected);
  }
});

test('a session whose note was lost is found by its journal, and one without work is not loaded', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(60_000) }, ask: {} };
  const first = await bed.host();
  bed.models.answers = [ask(call('c1', 'slow'))];
  await bed.start({}, { session: 'busy' });
  bed.models.answers = [say('done')];
  await bed.start({}, { session: 'ended' });
  first.abandon();
  const ended = await bed.lines('ended');
  for (const session of ['busy', 'ended']) {
    const revision = await bed.bus.active.note(refOf(session), 'gone');
    await bed.bus.active.forget(refOf(session), revision);
  }
  await bed.host();
  expect(await bed.lines('busy')).not.toContain('owned 2');
  await bed.time.advance(60_000);
  expect(await bed.lines('busy')).toContain('owned 2');
  expect(await bed.lines('busy')).toContainEqual(expect.stringContaining('c1 interrupted'));
  expect(await bed.lines('ended')).toEqual(ended);
  const claimed = bed.log.filter(({ message }) => message.includes('no active-session note'));
  expect(claimed.map(({ fields }) => fields)).toEqual([{ session_id: 'busy' }]);
});

test('a session whose note was lost is found while another stream of journals is unavailable', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(60_000) } };
  const first = await bed.host();
  bed.models.answers = [ask(call('c1', 'slow'))];
  await bed.start({}, { session: 'busy-2' });
  first.abandon();
  const revision = await bed.bus.active.note(refOf('busy-2'), 'gone');
  await bed.bus.active.forget(refOf('busy-2'), revision);
  const own = partitionOf(refOf('busy-2').sessionId);
  const sessionsOf = bed.journal.sessionsOf.bind(bed.journal);
  const asked: number[] = [];
  vi.spyOn(bed.journal, 'sessionsOf').mockImplementation((partition) => {
    asked.push(partition);
    if (partition !== own) throw new Error('no leader');
    return sessionsOf(partition);
  });
  await bed.host();
  await bed.time.advance(60_000);
  expect(asked.indexOf(own)).toBeGreaterThan(0);
  expect(await bed.lines('busy-2')).toContain('owned 2');
  expect(bed.log.filter(({ message }) => message.includes('cannot be read now')).length).toBeGreaterThan(0);
});
