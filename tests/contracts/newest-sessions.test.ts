/** Lists of more sessions than one window of the index has: each once, in order, and no record read that an entry stands for. */
import { readFile } from 'node:fs/promises';
import { createNatsSessionIndex } from '@coxswain/adapter-nats';
import { pendingApprovals } from '@coxswain/client';
import { type SessionIndexEntry, STREAMS, sessionRef, subjects, TenantId } from '@coxswain/protocol';
import { beforeAll, expect, test } from 'vitest';
import { BusTransport } from '../../libs/client/src/bus-transport.ts';
import { busOfFile, withFault } from './contract-bus.ts';
import { bytes } from './fresh-session.ts';

const bus = busOfFile();
const recorded = new URL('../traces/approval-for-good.jsonl', import.meta.url);
const tenant = TenantId.parse('many');
/** More than a window of entries. */
const SESSIONS = 400;
const ids = Array.from({ length: SESSIONS }, (_, at) => `many-${String(at).padStart(5, '0')}`);
const refOf = (id: string) => sessionRef(id, tenant);
const index = () => createNatsSessionIndex(bus.nc);

function entryOf(id: string, more: Partial<SessionIndexEntry> = {}): SessionIndexEntry {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const details = { persona: 'coder', model: 'm', turn: 1, cost_usd: 0, usage, parent: null, approvals: 0 };
  const at = new Date(Date.UTC(2026, 0, 1) + ids.indexOf(id)).toISOString();
  return { session_id: id, n: 1, at, state: 'stopped', stop_reason: 'end_turn', details, ...more };
}

async function publishAll(messages: Iterable<readonly [string, Uint8Array | string]>): Promise<void> {
  for (const [subject, payload] of messages) bus.nc.publish(subject, payload);
  await bus.nc.flush();
}

/** A way to the sessions that counts the records that it reads one by one. */
function transport(): BusTransport & { readonly read: () => number } {
  let read = 0;
  const nc = withFault(bus.nc, (method, [subject]) => {
    if (method === 'publish' && /^\$JS\.API\.(STREAM\.MSG|DIRECT)\.GET\./.test(String(subject))) read++;
    return undefined;
  });
  return Object.assign(new BusTransport({ nc }, tenant), { read: () => read });
}

async function pageByPage(query: { limit: number; state?: string; cursor?: string | undefined }): Promise<string[]> {
  const seen: string[] = [];
  let { cursor } = query;
  do {
    const page = await transport().listSessions({ ...query, cursor });
    seen.push(...page.sessions.map(({ session_id }) => session_id));
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return seen;
}

beforeAll(async () => {
  const line = (await readFile(recorded, 'utf8')).split('\n', 1)[0] ?? '';
  const { session_id } = JSON.parse(line) as { session_id: string };
  await publishAll(ids.map((id) => [subjects.journal(refOf(id)), bytes(line.replaceAll(session_id, id))]));
}, 120_000);

test('without entries, each session is listed once (LIST-2)', async () => {
  await expect.poll(async () => (await index().missing()).length, { timeout: 60_000 }).toBe(SESSIONS);
  const way = transport();
  const { sessions } = await way.listSessions({ limit: 2 });
  expect(sessions).toHaveLength(2);
  expect(way.read()).toBeLessThan(40);
  const { total } = await way.newestSessions();
  expect(total).toBe(SESSIONS);
}, 120_000);

test('an entry is stored only over the mark of its writer (INDEX-2)', async () => {
  const [id = ''] = ids;
  const stale = await index().mark(refOf(id));
  const mark = await index().mark(refOf(id));
  expect(await index().put(refOf(id), entryOf(id), stale)).toBe(false);
  expect(await index().put(refOf(id), entryOf(id), mark)).toBe(true);
  expect(await index().put(refOf(id), entryOf(id), 0)).toBe(false);
});

test('a session with a journal keeps its mark, and one without loses it', async () => {
  const [id = ''] = ids;
  await index().mark(refOf(id));
  await index().prune(refOf(id));
  expect((await index().missing()).map(({ sessionId }) => sessionId)).not.toContain(id);
  const unknown = sessionRef('never-started', tenant);
  await index().mark(unknown);
  await index().prune(unknown);
  const { sessions } = await transport().listSessions({ limit: 500 });
  expect(sessions.map(({ session_id }) => session_id)).not.toContain('never-started');
});

test('with entries, pages have each session once and read no record', async () => {
  await publishAll(ids.map((id) => [subjects.sessionEntry(refOf(id)), JSON.stringify(entryOf(id))]));
  await expect.poll(async () => (await index().missing()).length, { timeout: 60_000 }).toBe(0);
  const way = transport();
  const { sessions } = await way.listSessions({ limit: 100, details: true });
  expect(sessions.map(({ session_id }) => session_id)).toEqual(ids.slice(-100).reverse());
  expect(sessions[0]?.details).toMatchObject({ persona: 'coder' });
  expect(way.read()).toBe(0);
  const seen = await pageByPage({ limit: 150 });
  expect(seen).toHaveLength(SESSIONS);
  expect(new Set(seen)).toEqual(new Set(ids));
}, 120_000);

test('marks of sessions that were never started hide no session without an entry (LIST-2)', async () => {
  const [id = ''] = ids.slice(50);
  await bus.nc.request(
    `$JS.API.STREAM.PURGE.${STREAMS.sessions}`,
    JSON.stringify({ filter: subjects.sessionEntry(refOf(id)) }),
  );
  const orphans = [sessionRef('orphan', tenant), sessionRef('orphan', TenantId.parse('another'))];
  for (const orphan of orphans) await index().mark(orphan);
  expect((await index().missing()).map(({ sessionId }) => sessionId)).toEqual([id]);
  const seen = await pageByPage({ limit: 500 });
  expect(seen).toHaveLength(SESSIONS);
  expect(seen.at(-1)).toBe(id);
  for (const orphan of orphans) await index().prune(orphan);
  expect(await index().put(refOf(id), entryOf(id), 0)).toBe(true);
});

test('a page is ordered by the newest records, also a short one, and the next one continues', async () => {
  // The entry of an old session is the newest message of the index: the session has left memory.
  const old = ids[10] as string;
  await index().put(refOf(old), entryOf(old), await index().mark(refOf(old)));
  const first = await transport().listSessions({ limit: 2 });
  expect(first.sessions.map(({ session_id }) => session_id)).toEqual([ids.at(-1), ids.at(-2)]);
  const seen = await pageByPage({ limit: 60 });
  expect(seen).toHaveLength(SESSIONS);
  expect(new Set(seen)).toEqual(new Set(ids));
});

test('a filter looks at entries, and reads the records of marked sessions only', async () => {
  const [one = '', two = '', three = ''] = ids.slice(200);
  const failed = entryOf(one, { state: 'failed', stop_reason: 'error' });
  await index().put(refOf(one), failed, await index().mark(refOf(one)));
  await index().mark(refOf(two));
  await publishAll([[subjects.sessionEntry(refOf(three)), 'not an entry']]);
  const way = transport();
  expect(await pageByPage({ limit: 500, state: 'failed' })).toEqual([one]);
  const { sessions } = await way.listSessions({ limit: 500, state: 'failed' });
  expect(sessions).toMatchObject([{ session_id: one, stop_reason: 'error' }]);
  expect(way.read()).toBeLessThan(10);
  expect(new Set(await pageByPage({ limit: 150 }))).toEqual(new Set(ids));
});

test('pending approvals are read from entries, and sessions without them there are queried', async () => {
  const [known = '', large = ''] = ids.slice(300);
  const state = { function_awaiting_approval: 'parked' };
  const since = '2026-01-01T00:00:00.000Z';
  const approval = { call_id: 'c1', tool: 'transfer', args: { amount: 5 }, requested_by: 'rule', since };
  await index().put(refOf(known), entryOf(known, { state, approvals: [approval] }), await index().mark(refOf(known)));
  await index().put(refOf(large), entryOf(large, { state }), await index().mark(refOf(large)));
  const { sessions } = await transport().newestSessions();
  const queried: string[] = [];
  const found = await pendingApprovals(sessions, async (id) => {
    queried.push(id);
    return null;
  });
  expect(found).toEqual([{ session_id: known, persona: 'coder', ...approval }]);
  expect(queried).toEqual([large]);
  // Lists of sessions do not show them.
  const page = await transport().listSessions({ limit: 500, state: 'function_awaiting_approval' });
  expect(page.sessions).toHaveLength(2);
  for (const listed of page.sessions) expect(listed).not.toHaveProperty('approvals');
});

test('sessions whose entries are written during a walk are shown all the same', async () => {
  const late = ids.slice(0, 30);
  const first = await transport().listSessions({ limit: 150 });
  for (const id of late) await index().mark(refOf(id));
  const seen = await pageByPage({ limit: 150, cursor: first.next_cursor ?? undefined });
  const all = [...first.sessions.map(({ session_id }) => session_id), ...seen];
  expect(all.slice(-late.length).toSorted()).toEqual(late);
  expect(new Set(all)).toEqual(new Set(ids));
});

test('an invalid cursor is rejected', async () => {
  const listed = transport().listSessions({ cursor: Buffer.from('["1","x"]').toString('base64url') });
  await expect(listed).rejects.toMatchObject({ code: 'invalid_field', field: 'cursor' });
});

test('a deleted index is created again, with another identity', async () => {
  const before = await index().ensure();
  expect(await index().ensure()).toBe(before);
  await bus.nc.request(`$JS.API.STREAM.DELETE.${STREAMS.sessions}`);
  await expect(index().mark(refOf('one'))).rejects.toThrow();
  expect(await index().ensure()).not.toBe(before);
  expect(await index().mark(refOf('one'))).toBe(1);
});
