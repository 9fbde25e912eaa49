/**
 * Deletion by a command and from outside: the deleted session for all readers, and resumption after an interruption.
 */
import type { Journal, Purge } from '@coxswain/ports';
import { BOUNDS, RecordNotServedError, type Tombstone, tombstoneIn } from '@coxswain/protocol';
import { SessionActor } from '@coxswain/turn';
import { describe, expect, test, vi } from 'vitest';
import { sweepSessions } from '../src/journal/sweep.ts';
import {
  type DeleteOptions,
  type DeletePorts,
  type Deletion,
  deleteSession,
  type RetentionOptions,
  sha256Hex,
  startRetentionJob,
  sweepBlobs,
} from '../src/mod.ts';
import { ask, call, say } from './fake-model.ts';
import { taking } from './fake-tools.ts';
import { ASKING, refOf, type TestBed, testBed } from './test-bed.ts';

const DAY_MS = 24 * 3_600_000;

/** A session that has ended, on a host that has it in memory. */
async function ended(bed: TestBed) {
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  const host = await bed.host();
  await bed.start();
  return host;
}

/** A session with a pending approval. */
async function parked(bed: TestBed) {
  bed.tools = { ask: {} };
  bed.models.answers = [ask(call('c1', 'ask')), say('done')];
  const host = await bed.host();
  await bed.start({ permissions: ASKING });
  return host;
}

const portsOf = (bed: TestBed, other: Partial<DeletePorts> = {}): DeletePorts => ({
  journal: bed.journal,
  blobs: bed.bus.blobs,
  active: bed.bus.active,
  purge: bed.bus.purge,
  clock: bed.time.clock(),
  notifyHost: async ({ sessionId }) => void (await bed.send('delete', {}, { session: sessionId, tell: false })),
  ...other,
});

/** Deletes from outside, like an administrator of the bus. */
async function deleted(bed: TestBed, options: DeleteOptions = {}, other: Partial<DeletePorts> = {}, session = 's1') {
  let result: Deletion | Error | null = null;
  const deleting = deleteSession(portsOf(bed, other), refOf(session), options).then(
    (deletion) => {
      result = deletion;
    },
    (error: Error) => {
      result = error;
    },
  );
  await bed.time.until(() => result !== null, 120_000);
  await deleting;
  if ((result as unknown) instanceof Error) throw result;
  return result as unknown as Deletion;
}

async function tombstone(bed: TestBed, session = 's1'): Promise<Tombstone | null> {
  const last = await bed.bus.journal.last(refOf(session));
  return last && tombstoneIn(last.bytes);
}

const HAS_GONE = { status: 'refused', code: 'session_deleted' };

describe('the command', () => {
  test('ends the journal of an ended session: a tombstone after its records says who deleted it and why', async () => {
    const bed = testBed();
    await ended(bed);
    const before = await bed.bytes();
    const id = await bed.send('delete', { reason: 'no longer needed', actor: 'ann' });
    expect(bed.told(id)).toEqual(['accepted']);
    expect((await bed.bytes()).slice(0, -1)).toEqual(before);
    expect(await tombstone(bed)).toEqual({
      tombstone: 1,
      session_id: 's1',
      deleted_at: new Date(bed.time.nowMs).toISOString(),
      deleted_by: { name: 'ann', verified: false },
      reason: 'no longer needed',
      records: before.length,
      last_hash: sha256Hex(before.at(-1) as Uint8Array),
    });
  });

  test('is rejected with session_busy during a run, and recorded like any rejection', async () => {
    const bed = testBed();
    await parked(bed);
    const id = await bed.send('delete');
    expect(bed.told(id)).toEqual(['rejected session_busy']);
    expect((await bed.lines()).at(-1)).toBe(`command_rejected session_busy ${id}`);
    expect(await tombstone(bed)).toBeNull();
  });

  test('of an unknown session is session_not_found, and stores nothing', async () => {
    const bed = testBed();
    await bed.host();
    expect(bed.told(await bed.send('delete'))).toEqual(['rejected session_not_found']);
    expect(await bed.bytes()).toEqual([]);
  });

  test('is the last one: later commands are rejected, because the session is deleted', async () => {
    const bed = testBed();
    const first = await ended(bed);
    first.abandon();
    const ids = [await bed.send('delete'), await bed.send('prompt', 'on'), await bed.send('delete')];
    await bed.host();
    await bed.time.advance(10_000);
    expect(ids.map((id) => bed.told(id))).toEqual([
      ['accepted'],
      ['rejected session_deleted'],
      ['rejected session_deleted'],
    ]);
    expect((await bed.bytes()).filter((bytes) => tombstoneIn(bytes))).toHaveLength(1);
  });

  test('whose acknowledgement is lost has still deleted the session, once', async () => {
    const bed = testBed();
    await ended(bed);
    bed.journal.next = ['unanswered'];
    const id = await bed.send('delete');
    await bed.time.advance(10_000);
    expect(bed.told(id)).toEqual(['accepted']);
    expect((await bed.bytes()).filter((bytes) => tombstoneIn(bytes))).toHaveLength(1);
  });
});

describe('a deleted session', () => {
  test.each(['start', 'prompt', 'steer', 'approve', 'cancel', 'delete'])(
    'answers %s with session_deleted, and does not start again',
    async (verb) => {
      const bed = testBed();
      await ended(bed);
      await deleted(bed);
      const body =
        verb === 'start'
          ? { prompt: 'again' }
          : verb === 'approve'
            ? { call_id: 'c', decision: 'allow' }
            : verb === 'cancel' || verb === 'delete'
              ? {}
              : 'x';
      const here = await bed.send(verb, body);
      // A host that never had the session.
      await bed.host();
      await bed.time.advance(10_000);
      const there = await bed.send(verb, body);
      await bed.time.advance(10_000);
      expect([...bed.told(here), ...bed.told(there)]).toEqual(['rejected session_deleted', 'rejected session_deleted']);
      expect(bed.receipts.at(-1)?.message).toMatch(/^the session s1 was deleted at 2030-/);
      expect(await bed.bytes()).toHaveLength(1);
    },
  );

  test('is reported as deleted to requests for its state, forks and imports', async () => {
    const bed = testBed();
    const host = await ended(bed);
    await deleted(bed);
    await expect(host.status(refOf())).rejects.toMatchObject({ code: 'session_deleted' });
    const fork = await bed.send('start', { fork: { session: 's1', n: 2 } }, { session: 'f1' });
    expect(bed.told(fork)).toEqual(['rejected session_deleted']);
    expect(await bed.bytes('f1')).toEqual([]);
  });

  test('leaves the host’s memory at once: no snapshot, no note, no retry', async () => {
    const bed = testBed();
    const host = await ended(bed);
    expect(host.live).toBe(1);
    await deleted(bed);
    expect(host.live).toBe(0);
    await bed.time.advance(120_000);
    expect(await bed.bus.snapshots.get(refOf())).toBeNull();
    expect((await Promise.all(Array.from({ length: 64 }, (_, p) => bed.bus.active.list(p)))).flat()).toEqual([]);
    expect(bed.log.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
  });

  test('is not changed by a late timer, or by a host that finds its note', async () => {
    const bed = testBed();
    const first = await ended(bed);
    await deleted(bed);
    const [stone] = await bed.bytes();
    first.abandon();
    await bed.bus.active.note(refOf(), null);
    await bed.bus.timers.schedule(refOf(), '3-0', 0, Buffer.from('{"v":1,"effect_id":"3-0","purpose":"wake"}'));
    const host = await bed.host();
    await bed.time.advance(120_000);
    expect(await bed.bytes()).toEqual([stone]);
    expect(host.live).toBe(0);
    expect((await Promise.all(Array.from({ length: 64 }, (_, p) => bed.bus.active.list(p)))).flat()).toEqual([]);
  });
});

describe('deletion from outside', () => {
  test('leaves a tombstone of everything that the session had, and nothing else', async () => {
    const bed = testBed();
    await ended(bed);
    const records = (await bed.bytes()).length;
    const result = await deleted(bed, { by: { name: 'ops', verified: false }, reason: 'asked for' });
    expect(result).toMatchObject({
      status: 'deleted',
      tombstone: { records, deleted_by: { name: 'ops' }, reason: 'asked for' },
    });
    expect(await bed.bytes()).toHaveLength(1);
    expect(await deleted(bed)).toMatchObject(HAS_GONE);
  });

  test.each([
    ['that waits for an approval', parked],
    [
      'that is suspended',
      async (bed: TestBed) => {
        await parked(bed);
        await bed.send('suspend', {});
        await bed.send('approve', { call_id: 'c1', decision: 'allow' });
      },
    ],
  ])('of a session %s is refused with session_busy, and changes nothing', async (_what, make) => {
    const bed = testBed();
    await make(bed);
    const before = await bed.bytes();
    const result = await deleted(bed);
    expect(result).toMatchObject({ status: 'refused', code: 'session_busy' });
    expect(result.status === 'refused' && result.message).toMatch(/cox cancel s1$/);
    expect(await bed.bytes()).toEqual(before);
  });

  test('of a session that a prompt reaches first is rejected: its record came before the tombstone', async () => {
    const bed = testBed();
    await ended(bed);
    bed.tools = { read: { run: taking(3_600_000) } };
    bed.models.answers = [say('done'), say('done'), ask(call('c2', 'read')), say('done')];
    bed.journal.next = [
      async (append) => {
        bed.journal.next = [];
        await bed.send('prompt', 'on');
        return append();
      },
    ];
    expect(await deleted(bed)).toMatchObject({ status: 'refused', code: 'session_busy' });
    expect(await tombstone(bed)).toBeNull();
  });

  test('that comes before a host’s append: the host is refused, starts nothing, and says that it is deleted', async () => {
    const bed = testBed();
    await ended(bed);
    const asked = bed.models.requests.length;
    let done: Deletion | null = null;
    bed.journal.next = [
      async (append) => {
        // The host is about to append the record of a prompt.
        done = await deleteSession(portsOf(bed, { notifyHost: async () => undefined }), refOf());
        return append();
      },
    ];
    const id = await bed.send('prompt', 'on');
    await bed.time.advance(1_000);
    expect(done).toMatchObject({ status: 'deleted' });
    expect(bed.told(id)).toEqual(['rejected session_deleted']);
    expect(bed.models.requests.length).toBe(asked);
    expect(await bed.bytes()).toHaveLength(1);
  });

  test('a dry run says what would be deleted, and changes nothing', async () => {
    const bed = testBed();
    await ended(bed);
    const before = await bed.bytes();
    expect(await deleted(bed, { dryRun: true })).toEqual({ status: 'would_delete', records: before.length });
    expect(await bed.bytes()).toEqual(before);
    await deleted(bed);
    const snapshots = vi.fn(async () => undefined);
    const again = await deleted(bed, { dryRun: true }, { purge: { ...bed.bus.purge, snapshots } });
    expect(again).toMatchObject(HAS_GONE);
    expect(snapshots).not.toHaveBeenCalled();
  });

  test.each(['timers', 'snapshots', 'journalBefore'] as const)(
    'broken off at its %s is done again from there, and then it is done',
    async (at) => {
      const bed = testBed();
      await ended(bed);
      const dies: Purge = { ...bed.bus.purge, [at]: async () => Promise.reject(new Error('dying')) };
      await expect(deleted(bed, {}, { purge: dies })).rejects.toThrow('dying');
      const stone = await tombstone(bed);
      expect(stone).not.toBeNull();
      // A half deleted session counts as deleted.
      expect(bed.told(await bed.send('start', { prompt: 'again' }))).toEqual(['rejected session_deleted']);
      expect(await deleted(bed)).toMatchObject({ status: 'completed', tombstone: stone });
      expect(await bed.bytes()).toHaveLength(1);
      expect(await deleted(bed)).toMatchObject(HAS_GONE);
    },
  );

  test('completes the deletion that the command started', async () => {
    const bed = testBed();
    await ended(bed);
    await bed.send('delete', { actor: 'ann' });
    expect(await deleted(bed, { by: { name: 'ops', verified: false } })).toMatchObject({
      status: 'completed',
      tombstone: { deleted_by: { name: 'ann' } },
    });
    expect(await bed.bytes()).toHaveLength(1);
  });

  test.each(['newest', 'first'])(
    'of a session with an unreadable %s record needs an explicit option',
    async (which) => {
      const bed = testBed();
      const other = testBed();
      await other.host();
      await other.start();
      const [, running] = await other.bytes();
      const unreadable = await bed.bus.journal.append(refOf(), Buffer.from('{"v":99,"n":1}'), 0);
      if (unreadable.status !== 'stored') throw new Error('the append was refused');
      if (which === 'first') await bed.bus.journal.append(refOf(), running as Uint8Array, unreadable.fence);
      expect(await deleted(bed)).toMatchObject({ status: 'refused', code: 'record_unreadable' });
      const records = which === 'first' ? 2 : 0;
      expect(await deleted(bed, { unreadable: true })).toMatchObject({ status: 'deleted', tombstone: { records } });
    },
  );
});

describe('forks of a deleted session', () => {
  test('are complete: they can be read, continued and forked', async () => {
    const bed = testBed();
    await ended(bed);
    await bed.send('start', { fork: { session: 's1', n: 3 } }, { session: 'f1' });
    const copied = await bed.bytes('f1');
    await deleted(bed);
    expect(await bed.bytes('f1')).toEqual(copied);
    const again = await bed.send('start', { fork: { session: 'f1', n: 2 } }, { session: 'f2' });
    expect(bed.told(again)).toEqual(['accepted']);
    // Every journal of the bed is replayed at the end of the test.
  });

  test('that are unfinished delay the deletion until they are complete', async () => {
    const bed = testBed();
    const first = await ended(bed);
    let appends = 0;
    bed.journal.always = async (append, { ref }) => {
      if (ref.sessionId !== 'f1' || appends++ < 2) return append();
      first.abandon();
      return { status: 'ambiguous', cause: 'dying' };
    };
    await bed.send('start', { fork: { session: 's1', n: 3 } }, { session: 'f1' });
    bed.journal.always = 'none';
    expect(await bed.bytes('f1')).toHaveLength(2);
    // No host completes the copy: after the wait, the records stay.
    expect(await deleted(bed, { forksWithinMs: 5_000 })).toMatchObject({
      status: 'refused',
      code: 'session_being_copied',
    });
    expect((await bed.bytes()).length).toBeGreaterThan(3);
    // Another host completes it, also while the origin is deleted again.
    const deleting = deleted(bed);
    await bed.host();
    expect(await deleting).toMatchObject({ status: 'completed' });
    expect(await bed.bytes()).toHaveLength(1);
    await bed.time.advance(1_000);
    expect((await bed.events('f1')).filter(({ type }) => type === 'copy_failed')).toEqual([]);
    expect((await bed.bytes('f1')).length).toBeGreaterThan(3);
  });

  test('that have failed do not delay it', async () => {
    const bed = testBed();
    bed.models.answers = [ask(call('c1', 'read')), say('done'), say('again')];
    await bed.host();
    await bed.start();
    await bed.send('prompt', 'go on');
    const { length: n } = await bed.bytes();
    const step = SessionActor.prototype.step;
    let copying = 0;
    const spy = vi.spyOn(SessionActor.prototype, 'step');
    spy.mockImplementation(function (this: SessionActor, input, at, atMs) {
      if (this.state.context.session_id === 'f1' && at === 3 && copying++ === 0) throw new Error('an invariant broke');
      return step.call(this, input, at, atMs);
    });
    await bed.send('start', { fork: { session: 's1', n } }, { session: 'f1' });
    spy.mockRestore();
    expect(await bed.lines('f1')).toContain('copy_failed 2 session_failed');
    expect((await bed.bytes('f1')).length).toBeLessThan(n);
    expect(await deleted(bed, { forksWithinMs: 5_000 })).toMatchObject({ status: 'deleted' });
  });
});

describe('a sweep', () => {
  const keptMs = (ms: number | null) => ({ keptMs: () => ms, max: 100 });

  async function swept(bed: TestBed, options: Parameters<typeof sweepSessions>[1], other: Partial<DeletePorts> = {}) {
    const found: string[] = [];
    let done = false;
    const sweeping = (async () => {
      for await (const { ref, deletion } of sweepSessions(portsOf(bed, other), options))
        found.push(`${ref.sessionId} ${deletion.status}`);
      done = true;
    })();
    await bed.time.until(() => done, 120_000);
    await sweeping;
    return found.sort();
  }

  test('deletes sessions that ended long enough ago, and none that runs, waits or ended later', async () => {
    const bed = testBed();
    await ended(bed);
    bed.tools = { ask: {}, read: {} };
    bed.models.answers = [ask(call('c1', 'ask')), say('late')];
    await bed.start({ permissions: ASKING }, { session: 'parked' });
    bed.time.leap(30 * DAY_MS);
    await bed.time.advance(1_000);
    bed.models.answers = [say('late')];
    await bed.start({}, { session: 'late' });
    expect(await swept(bed, { ...keptMs(30 * DAY_MS), dryRun: true })).toEqual(['s1 would_delete']);
    expect(await swept(bed, keptMs(null))).toEqual([]);
    expect(await swept(bed, keptMs(30 * DAY_MS))).toEqual(['s1 deleted']);
    expect(await swept(bed, keptMs(30 * DAY_MS))).toEqual([]);
    expect((await bed.bytes('late')).length).toBeGreaterThan(1);
  });

  test('completes unfinished deletions, also where all sessions are kept', async () => {
    const bed = testBed();
    await ended(bed);
    await bed.send('delete');
    expect(await swept(bed, keptMs(null))).toEqual(['s1 completed']);
    expect(await bed.bytes()).toHaveLength(1);
  });

  test('ends at its bound, and the next sweep continues', async () => {
    const bed = testBed();
    bed.models.answers = Array.from({ length: 5 }, () => say('done'));
    await bed.host();
    for (let i = 0; i < 5; i++) await bed.start({}, { session: `s${i}` });
    await bed.time.advance(1_000);
    const options = { keptMs: () => 0, max: 2 };
    expect((await swept(bed, options)).length).toBe(2);
    expect((await swept(bed, options)).length).toBe(2);
    expect((await swept(bed, options)).length).toBe(1);
  });

  test('a session that cannot be deleted does not count towards the bound of a sweep', async () => {
    const bed = testBed();
    bed.models.answers = Array.from({ length: 3 }, () => say('done'));
    await bed.host();
    for (let i = 0; i < 3; i++) await bed.start({}, { session: `s${i}` });
    await bed.time.advance(1_000);
    // One is in a stream without write access.
    const journal: DeletePorts['journal'] = {
      ...bed.bus.journal,
      append: async (ref, bytes, fence) =>
        ref.sessionId === 's0'
          ? { status: 'ambiguous', cause: 'no leader' }
          : bed.bus.journal.append(ref, bytes, fence),
    };
    const found = await swept(bed, { keptMs: () => 0, max: 2 }, { journal });
    expect(found).toEqual(['s0 refused', 's1 deleted', 's2 deleted']);
  });

  test('a session with a record that no replica serves is refused, and does not end a sweep', async () => {
    const bed = testBed();
    bed.models.answers = Array.from({ length: 4 }, () => say('done'));
    await bed.host();
    for (let i = 0; i < 4; i++) await bed.start({}, { session: `s${i}` });
    await bed.time.advance(1_000);
    const unserved = (id: string) => new RecordNotServedError('COX_JOURNAL_0', id, null);
    let isServed = false;
    const journal: Journal = {
      ...bed.bus.journal,
      last: async (ref) => {
        // A replica serves it again at once. The sweep must still not delete a session of unknown age.
        if (ref.sessionId === 's0' && !isServed) {
          isServed = true;
          throw unserved('s0');
        }
        return bed.bus.journal.last(ref);
      },
      read: (ref, fence) => {
        if (ref.sessionId === 's2') throw unserved('s2');
        return bed.bus.journal.read(ref, fence);
      },
    };
    const found = await swept(bed, { keptMs: () => 0, max: 100 }, { journal });
    expect(found).toEqual(['s0 refused', 's1 deleted', 's2 refused', 's3 deleted']);
  });

  const large = (seed: string) => seed.repeat(BOUNDS.fieldInlineMaxBytes);

  test('removes blobs without a reference after a day', async () => {
    const bed = testBed();
    bed.models.answers = [say('one'), say('two'), say('three')];
    await bed.host();
    await bed.start({ prompt: large('a ') }, { session: 's1' });
    await bed.start({ prompt: large('b ') }, { session: 's2' });
    await bed.start({ prompt: large('a ') }, { session: 's3' });
    const result = await deleted(bed, {}, {}, 's1');
    const only = new Set(result.status === 'deleted' ? result.blobs : []);
    expect(only.size).toBe(1);
    bed.time.leap(DAY_MS);
    await bed.time.advance(1_000);
    expect(await sweepBlobs(bed.bus.purge, { only })).toEqual({ deleted: 0, used: 1, left: 0 });
    await deleted(bed, {}, {}, 's3');
    expect(await sweepBlobs(bed.bus.purge, { only, dryRun: true })).toEqual({ deleted: 1, used: 0, left: 0 });
    // The unused one of two blobs, in whichever round it comes.
    expect(await sweepBlobs(bed.bus.purge, { dryRun: true, atOnce: 1 })).toEqual({ deleted: 1, used: 1, left: 0 });
    expect(await sweepBlobs(bed.bus.purge)).toEqual({ deleted: 1, used: 1, left: 0 });
    expect((await bed.records('s2')).length).toBeGreaterThan(0);
  });

  test('keeps a blob that was stored again for a record to come, however old it is', async () => {
    const bed = testBed();
    const bytes = Buffer.from('shared');
    const sha256 = sha256Hex(bytes);
    await bed.bus.blobs.put(sha256, bytes);
    bed.time.leap(3 * DAY_MS);
    await bed.time.advance(1_000);
    // Between the search for records and the deletion a host stores the same bytes again.
    const { blob } = bed.bus.purge;
    const purge: Purge = {
      ...bed.bus.purge,
      blob: async (found) => {
        await bed.bus.blobs.put(sha256, bytes);
        return blob(found);
      },
    };
    expect(await sweepBlobs(purge)).toEqual({ deleted: 0, used: 0, left: 1 });
    expect(await sweepBlobs(bed.bus.purge)).toEqual({ deleted: 0, used: 0, left: 1 });
    expect(await bed.bus.blobs.get(sha256)).not.toBeNull();
  });

  test('does not read the journals if there is no candidate', async () => {
    const bed = testBed();
    await ended(bed);
    const records = vi.fn(bed.bus.purge.records);
    expect(await sweepBlobs({ ...bed.bus.purge, records })).toEqual({ deleted: 0, used: 0, left: 0 });
    expect(records).not.toHaveBeenCalled();
  });
});

test('no session is deleted from outside while a call of it runs', async () => {
  const bed = testBed();
  bed.tools = { read: { run: taking(60_000) } };
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host();
  await bed.start();
  expect(await deleted(bed)).toMatchObject({ status: 'refused', code: 'session_busy' });
  expect((await bed.lines()).at(-1)).toBe('call_started c1');
});

describe('the retention job', () => {
  const QUIET = { debug() {}, info() {}, warn() {}, error() {} };
  const running = (bed: TestBed, purge: Partial<Purge> = {}, options?: RetentionOptions) =>
    startRetentionJob(portsOf(bed, { purge: { ...bed.bus.purge, ...purge } }), QUIET, options);
  const stopped = async (bed: TestBed, job: ReturnType<typeof running>) => {
    let isStopped = false;
    const stopping = job.stop().then(() => {
      isStopped = true;
    });
    await bed.time.until(() => isStopped, 60_000);
    await stopping;
  };
  const isPurged = async (bed: TestBed, session = 's1') =>
    (await bed.bytes(session)).every((bytes) => tombstoneIn(bytes)) &&
    (await bed.bus.snapshots.get(refOf(session))) === null;

  test('purges a deleted session within the promised time, and no session without a tombstone', async () => {
    const bed = testBed();
    await ended(bed);
    bed.models.answers = [say('done')];
    await bed.start({}, { session: 's2' });
    const kept = await bed.bytes('s2');
    const job = running(bed);
    await bed.time.advance(60_000);
    expect(await bed.bytes('s2')).toEqual(kept);
    await bed.send('delete');
    expect(await isPurged(bed)).toBe(false);
    await bed.time.advance(job.within.recordsMs);
    expect(await isPurged(bed)).toBe(true);
    expect(await bed.bytes('s2')).toEqual(kept);
    await stopped(bed, job);
  });

  test('leaves no timer after a stop, which would keep the process alive', async () => {
    const bed = testBed();
    const ports = portsOf(bed);
    let timers = 0;
    const sleep: typeof ports.clock.sleep = (delayMs, signal) => {
      timers++;
      return ports.clock.sleep(delayMs, signal).finally(() => timers--);
    };
    const job = startRetentionJob({ ...ports, clock: { ...ports.clock, sleep } }, QUIET);
    await bed.time.until(() => timers > 0, 1_000);
    expect(timers).toBe(1);
    await job.stop();
    expect(timers).toBe(0);
  });

  test('finds sessions that were deleted while it did not run', async () => {
    const bed = testBed();
    await ended(bed);
    await bed.send('delete');
    const job = running(bed);
    await bed.time.advance(job.within.recordsMs);
    expect(await isPurged(bed)).toBe(true);
    await stopped(bed, job);
  });

  test('purges the other sessions although the newest record of one cannot be read, and reports that', async () => {
    const bed = testBed();
    await ended(bed);
    bed.models.answers = [say('done'), say('done')];
    for (const session of ['s2', 's3']) await bed.start({}, { session });
    await bed.send('delete', {}, { session: 's2' });
    let isDamaged = true;
    const { last } = bed.bus.journal;
    const journal: Journal = {
      ...bed.bus.journal,
      last: async (ref) => {
        if (isDamaged && ref.sessionId === 's1') throw new RecordNotServedError('COX_JOURNAL_0', 's1', null);
        return last(ref);
      },
    };
    const kept = await bed.bytes('s1');
    const job = startRetentionJob(portsOf(bed, { journal }), QUIET);
    await bed.time.advance(10_000);
    await bed.send('delete', {}, { session: 's3' });
    await bed.time.advance(job.within.recordsMs);
    expect(await isPurged(bed, 's2')).toBe(true);
    expect(await isPurged(bed, 's3')).toBe(true);
    await expect(job.ping()).rejects.toThrow('no replica serves it');
    isDamaged = false;
    await bed.time.advance(10_000);
    await expect(job.ping()).resolves.toBeUndefined();
    expect(await bed.bytes('s1')).toEqual(kept);
    await stopped(bed, job);
  });

  test('purges new deletions while it still reads the newest records of very many sessions', async () => {
    const bed = testBed();
    await ended(bed);
    let read = 0;
    let isPurgedMeanwhile = false;
    const { last, sessions } = bed.bus.journal;
    const journal: Journal = {
      ...bed.bus.journal,
      async *sessions(tenant) {
        for (; read < 3_200 && !isPurgedMeanwhile; read++) {
          if (read % 32 === 0) isPurgedMeanwhile = await isPurged(bed, 's1');
          yield refOf(`many-${read}`);
        }
        yield* sessions(tenant);
      },
      last: async (ref) => {
        if (ref.sessionId.startsWith('many')) await bed.time.clock().sleep(1_000);
        return last(ref);
      },
    };
    const job = startRetentionJob(portsOf(bed, { journal }), QUIET);
    await bed.time.advance(2_000);
    await bed.send('delete');
    await bed.time.advance(100_000);
    expect(isPurgedMeanwhile).toBe(true);
    await stopped(bed, job);
  });

  test('repeats a failed purge, and reports the failure until it succeeds', async () => {
    const bed = testBed();
    await ended(bed);
    let isFailing = true;
    const { journalBefore } = bed.bus.purge;
    const job = running(bed, {
      journalBefore: (ref, fence) => (isFailing ? Promise.reject(new Error('no leader')) : journalBefore(ref, fence)),
    });
    await bed.send('delete');
    await bed.time.advance(30_000);
    expect(await isPurged(bed)).toBe(false);
    await expect(job.ping()).rejects.toThrow('no leader');
    isFailing = false;
    await bed.time.advance(30_000);
    expect(await isPurged(bed)).toBe(true);
    await expect(job.ping()).resolves.toBeUndefined();
    await stopped(bed, job);
  });

  test('reads the newest record of every session once, also while a purge fails', async () => {
    const bed = testBed();
    await ended(bed);
    await bed.send('delete');
    let reads = 0;
    const { tenants } = bed.bus.purge;
    const job = running(bed, {
      tenants: () => {
        reads++;
        return tenants();
      },
      timers: () => Promise.reject(new Error('no leader')),
    });
    await bed.time.advance(60_000);
    await expect(job.ping()).rejects.toThrow('no leader');
    expect(reads).toBe(1);
    await stopped(bed, job);
  });

  test('purges the other sessions, and sweeps, while some purges fail', async () => {
    const bed = testBed();
    await bed.bus.blobs.put(sha256Hex('unused'), Buffer.from('unused'));
    await bed.time.advance(BOUNDS.unusedBlobKeptMs);
    const sessions = Array.from({ length: 40 }, (_, i) => `s${i}`);
    await bed.host();
    for (const session of sessions) {
      bed.models.answers = [say('done')];
      await bed.start({}, { session });
      await bed.send('delete', {}, { session });
    }
    // As many as are purged at a time, and one more.
    const failing = new Set<string>();
    const { timers } = bed.bus.purge;
    const fail: Purge['timers'] = async (ref) => {
      if (failing.size < 33) failing.add(ref.sessionId);
      if (failing.has(ref.sessionId)) throw new Error('no leader');
      return timers(ref);
    };
    const job = running(bed, { timers: fail }, { sweepFilesEveryMs: 30_000 });
    await bed.time.advance(job.within.recordsMs);
    const left = [];
    for (const session of sessions) if (!(await isPurged(bed, session))) left.push(session);
    expect(left.sort()).toEqual([...failing].sort());
    expect(await bed.bus.blobs.get(sha256Hex('unused'))).toBe(null);
    await expect(job.ping()).rejects.toThrow('no leader');
    await stopped(bed, job);
  });

  test('purges within the promised time while a sweep reads the records, and a stop ends the sweep', async () => {
    const bed = testBed();
    await bed.bus.blobs.put(sha256Hex('unused'), Buffer.from('unused'));
    await bed.time.advance(BOUNDS.unusedBlobKeptMs);
    await ended(bed);
    const { clock } = portsOf(bed);
    let records = 0;
    const endless: Purge['records'] = async function* () {
      for (;;) {
        await clock.sleep(1_000);
        records++;
        yield Buffer.from('{}');
      }
    };
    const job = running(bed, { records: endless }, { sweepFilesEveryMs: 30_000 });
    await bed.time.until(() => records > 0, 60_000);
    await bed.send('delete');
    await bed.time.advance(job.within.recordsMs);
    expect(await isPurged(bed)).toBe(true);
    await stopped(bed, job);
    expect(await bed.bus.blobs.get(sha256Hex('unused'))).not.toBe(null);
  });

  test('repeats a failed sweep of blobs after 15 minutes', async () => {
    const bed = testBed();
    await bed.bus.blobs.put(sha256Hex('unused'), Buffer.from('unused'));
    await bed.time.advance(BOUNDS.unusedBlobKeptMs);
    let sweeps = 0;
    const { blobs } = bed.bus.purge;
    const job = running(bed, {
      blobs: () => {
        if (sweeps++ === 0) throw new Error('no leader');
        return blobs();
      },
    });
    await bed.time.until(() => sweeps > 0, DAY_MS + 60_000);
    await expect(job.ping()).rejects.toThrow('no leader');
    expect(await bed.bus.blobs.get(sha256Hex('unused'))).not.toBe(null);
    await bed.time.advance(14 * 60_000);
    expect(sweeps).toBe(1);
    await expect(job.ping()).rejects.toThrow('no leader');
    await bed.time.advance(2 * 60_000);
    await expect(job.ping()).resolves.toBeUndefined();
    expect(await bed.bus.blobs.get(sha256Hex('unused'))).toBe(null);
    expect(sweeps).toBe(2);
    await stopped(bed, job);
  });

  test.each([
    { purgesWithin: { recordsMs: 60_000, filesMs: 172_800_000 }, says: 'within 60 s, files within 48 h' },
    { purgesWithin: null, says: 'no retention job is alive' },
  ])('the receipt of a deletion says $says', async ({ purgesWithin, says }) => {
    const bed = testBed();
    bed.models.answers = [say('done')];
    await bed.host({}, { retention: { purgesWithin: async () => purgesWithin } });
    await bed.start();
    const id = await bed.send('delete');
    expect(bed.receipts.filter(({ command_id }) => command_id === id)).toMatchObject([
      {
        stage: 'accepted',
        message: expect.stringContaining(says),
        detail: { purge: purgesWithin && { records_within_ms: 60_000, files_within_ms: 172_800_000 } },
      },
    ]);
  });
});
