/** What a host writes to the index of sessions, and when. */
import { canonicalJson, type Json, partitionOf, type SessionIndexEntry } from '@coxswain/protocol';
import { MACHINE_VERSION } from '@coxswain/turn';
import { expect, test } from 'vitest';
import { deleteSession, loadSession } from '../src/mod.ts';
import { ask, call, say } from './fake-model.ts';
import { RecordedIndex } from './recorded-index.ts';
import { ASKING, refOf, testBed } from './test-bed.ts';

const SOON_AWAY = { passivateAfterMs: 1_000, sweepEveryMs: 500 };

async function indexed(options = SOON_AWAY) {
  const bed = testBed();
  const index = new RecordedIndex(bed.bus.journal);
  const host = await bed.host(options, { index });
  return { bed, index, host };
}

test('a session has a mark before its first record, and its entry when it has left memory (INDEX-1)', async () => {
  const { bed, index } = await indexed();
  bed.models.answers = [say('done')];
  let markedFirst: unknown;
  const ends = bed.bus.subscribeEvents(refOf(), () => {
    markedFirst ??= index.of(refOf());
  });
  await bed.start();
  ends();
  expect([markedFirst, index.of(refOf())]).toEqual([null, null]);
  await bed.time.advance(3_000);
  const [newest] = (await bed.records()).slice(-1);
  expect(index.of(refOf())).toMatchObject({ session_id: 's1', n: newest?.n, at: newest?.at, state: 'stopped' });
  expect(index.of(refOf())?.details).toMatchObject({ turn: 1, approvals: 0 });
});

test.each([
  ['small', 'a.txt', true],
  ['too large', 'a'.repeat(9_000), false],
])('an entry has the pending approvals of its session: %s arguments', async (_, path, isInEntry) => {
  const { bed, index } = await indexed();
  bed.tools = { ask: {} };
  bed.models.answers = [ask(call('c1', 'ask', { path }))];
  await bed.start({ permissions: ASKING });
  await bed.time.advance(3_000);
  expect(index.of(refOf())?.details).toMatchObject({ approvals: 1 });
  const pending = isInEntry ? [expect.objectContaining({ tool: 'ask', args: { path } })] : undefined;
  expect(index.of(refOf())?.approvals).toEqual(pending);
});

test('a session that wakes is marked before its next record (INDEX-2)', async () => {
  const { bed, index } = await indexed();
  bed.models.answers = [say('done'), say('again')];
  await bed.start();
  await bed.time.advance(3_000);
  const marks: unknown[] = [];
  bed.bus.subscribeEvents(refOf(), () => void marks.push(index.of(refOf())));
  await bed.send('prompt', { text: 'go on' });
  expect(marks.length).toBeGreaterThan(0);
  expect(new Set(marks)).toEqual(new Set([null]));
});

test('a command for an unknown session leaves no entry', async () => {
  const { bed, index, host } = await indexed();
  await bed.send('steer', { text: 'hello?' });
  await bed.time.advance(3_000);
  expect(host.live).toBe(0);
  expect(index.of(refOf())).toBeUndefined();
});

test('an entry of another host is not replaced: the session is marked again', async () => {
  const { bed, index } = await indexed();
  bed.models.answers = [say('done')];
  await bed.start();
  await index.mark(refOf());
  await bed.time.advance(3_000);
  expect(index.of(refOf())).toBeNull();
});

test('a host gives entries to sessions that have none, the longest unchanged first', async () => {
  const bed = testBed();
  bed.models.answers = [say('done'), say('done')];
  const before = await bed.host(SOON_AWAY);
  await bed.start({}, { session: 'old' });
  await bed.time.advance(1_000);
  await bed.start({}, { session: 'new' });
  await bed.time.advance(3_000);
  await before.stop();
  const index = new RecordedIndex(bed.bus.journal);
  await bed.host(SOON_AWAY, { index });
  await bed.time.advance(6_000);
  expect([...index.entries.values()].map(({ entry }) => entry?.session_id)).toEqual(['old', 'new']);
  expect(index.of(refOf('new'))).toMatchObject({ state: 'stopped' });
});

test('a session in memory that has lost its mark gets a mark, and no entry', async () => {
  const { bed, index } = await indexed({ passivateAfterMs: 60_000, sweepEveryMs: 500 });
  bed.models.answers = [say('done')];
  await bed.start();
  index.entries.clear();
  await bed.time.advance(6_000);
  expect(index.of(refOf())).toBeNull();
});

test('without an index that works, sessions start and end; the host warns once, and repeats its writes later', async () => {
  const { bed, index, host } = await indexed();
  index.isLost = true;
  bed.models.answers = [say('done'), say('done')];
  await bed.start();
  await bed.start({}, { session: 's2' });
  expect((await bed.lines()).at(-1)).toMatch(/^agent_end/);
  expect((await bed.lines('s2')).at(-1)).toMatch(/^agent_end/);
  expect(host.indexProblem).toContain('no responders');
  await bed.time.advance(10_000);
  const about = bed.log.filter(({ level, message }) => level === 'warn' && message.includes('index of sessions'));
  expect(about).toHaveLength(1);
  const notes = () => Promise.all(['s1', 's2'].map((id) => bed.bus.active.list(partitionOf(refOf(id).sessionId))));
  // A host that crashes now leaves its notes: the next host marks these sessions.
  expect((await notes()).flat()).toHaveLength(2);
  index.isLost = false;
  await bed.time.advance(5_000);
  expect([index.of(refOf('s1')), index.of(refOf('s2'))]).toEqual([null, null]);
  expect((await notes()).flat()).toEqual([]);
  expect(host.indexProblem).toBeNull();
});

test('a mark that failed replaces the entry of a session later', async () => {
  const { bed, index } = await indexed({ passivateAfterMs: 60_000, sweepEveryMs: 500 });
  await index.put(refOf(), { session_id: 's1' } as SessionIndexEntry, 0);
  index.isLost = true;
  bed.models.answers = [say('done')];
  await bed.start();
  index.isLost = false;
  expect(index.of(refOf())).not.toBeNull();
  await bed.time.advance(5_000);
  expect(index.of(refOf())).toBeNull();
});

test('a mark that failed replaces the entry of a session that was deleted meanwhile, and its note stays until then', async () => {
  const { bed, index } = await indexed();
  bed.models.answers = [say('done')];
  await bed.start();
  await bed.time.advance(3_000);
  expect(index.of(refOf())).toMatchObject({ state: 'stopped' });
  index.isLost = true;
  const id = await bed.send('delete');
  expect(bed.told(id)).toEqual(['accepted']);
  const notes = () => bed.bus.active.list(partitionOf('s1'));
  expect(await notes()).toHaveLength(1);
  index.isLost = false;
  await bed.time.advance(5_000);
  expect(index.of(refOf())).toBeNull();
  expect(await notes()).toEqual([]);
});

test('a session whose mark failed on a host that crashed is marked by the next one', async () => {
  const { bed, index, host } = await indexed();
  index.isLost = true;
  bed.models.answers = [say('done')];
  await bed.start();
  await bed.time.advance(3_000);
  host.abandon();
  index.isLost = false;
  await index.put(refOf(), { session_id: 's1' } as SessionIndexEntry, 0);
  await bed.host(SOON_AWAY, { index });
  await bed.time.advance(60_000);
  expect(index.of(refOf())).toBeNull();
});

test('an index that was lost is filled again at once', async () => {
  const { bed, index } = await indexed();
  bed.models.answers = [say('done')];
  await bed.start();
  await bed.time.advance(20_000);
  index.recreate();
  await bed.time.advance(5_000);
  expect(index.of(refOf())).toMatchObject({ state: 'stopped' });
});

test.each([
  ['machine_version_unknown', { machine_version: MACHINE_VERSION + 6 }],
  ['event_not_accepted', {}],
])('sessions that this release cannot load (%s) get a mark, and the others an entry', async (code, change) => {
  const before = testBed();
  const ids = ['s1', 's2', 's3', 's4', 's5'];
  before.models.answers = ids.map(() => say('done'));
  await before.host();
  for (const session of ids) await before.start({}, { session });
  const { bed, index } = await indexed();
  for (const id of ids) {
    let fence = 0;
    const records = await before.records(id);
    for (const [i, bytes] of (await before.bytes(id)).entries()) {
      // No transition exists for the start of a run in its last record.
      const start = records.flatMap(({ events }) => events).find(({ type }) => type === 'agent_start');
      const text = Buffer.from(bytes).toString('utf8');
      const raw = JSON.parse(text) as { events: object[] };
      const isBroken = id !== 's5' && i === records.length - 1;
      const broken = canonicalJson({ ...raw, events: [...raw.events, { ...start, ...change }] } as Json);
      const stored = await bed.bus.journal.append(refOf(id), Buffer.from(isBroken ? broken : text, 'utf8'), fence);
      if (stored.status !== 'stored') throw new Error(stored.status);
      fence = stored.fence;
    }
  }
  await expect(loadSession(bed.ports(), refOf('s1'), false)).rejects.toMatchObject({ code });
  await bed.time.advance(20_000);
  expect(ids.map((id) => index.of(refOf(id)))).toEqual([
    null,
    null,
    null,
    null,
    expect.objectContaining({ state: 'stopped' }),
  ]);
  for (const id of ids) bed.forget(id);
});

test('a deleted session has an entry that says so', async () => {
  const { bed, index } = await indexed();
  bed.models.answers = [say('done')];
  await bed.start();
  await bed.time.advance(3_000);
  const { journal, blobs, active, purge } = bed.bus;
  const ports = { journal, blobs, active, purge, index, clock: bed.time.clock(), notifyHost: async () => undefined };
  const deleting = deleteSession(ports, refOf(), { reason: 'done with' });
  await bed.time.settle();
  expect((await deleting).status).toBe('deleted');
  expect(index.of(refOf())).toMatchObject({ state: 'deleted', deleted: { reason: 'done with' } });
});
