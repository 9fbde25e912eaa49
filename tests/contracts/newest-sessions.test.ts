/** Lists of more sessions than one read takes: each once, newest first, and no more records read than are shown. */
import { readFile } from 'node:fs/promises';
import { JOURNAL_STREAMS, sessionRef, subjects, TenantId, topState } from '@coxswain/protocol';
import { jetstream } from '@nats-io/jetstream';
import { beforeAll, expect, test } from 'vitest';
import { BusTransport } from '../../libs/client/src/bus-transport.ts';
import { busOfFile, withFault } from './contract-bus.ts';
import { bytes } from './fresh-session.ts';

const bus = busOfFile();
const recorded = new URL('../traces/approval-for-good.jsonl', import.meta.url);
const tenant = TenantId.parse('many');
/** More than the end of each stream that is looked at first. */
const SESSIONS = JOURNAL_STREAMS.length * 300;
const ids = Array.from({ length: SESSIONS }, (_, at) => `many-${String(at).padStart(5, '0')}`);

let recordOf: (id: string) => Uint8Array;
beforeAll(async () => {
  const line = (await readFile(recorded, 'utf8')).split('\n', 1)[0] ?? '';
  const { session_id } = JSON.parse(line) as { session_id: string };
  recordOf = (id) => bytes(line.replaceAll(session_id, id));
  for (const id of ids) bus.nc.publish(subjects.journal(sessionRef(id, tenant)), recordOf(id));
  await bus.nc.flush();
}, 120_000);

/** A way to the sessions that counts the records that it reads one by one. */
function transport(): BusTransport & { readonly read: () => number } {
  let read = 0;
  const nc = withFault(bus.nc, (method, [subject]) => {
    if (method === 'request' && /^\$JS\.API\.(STREAM\.MSG|DIRECT)\.GET\./.test(String(subject))) read++;
    return undefined;
  });
  return Object.assign(new BusTransport({ nc, inboxPrefix: undefined }, tenant), { read: () => read });
}

test('they are counted, and none of them is read', async () => {
  const way = transport();
  await expect.poll(async () => (await way.newestSessions()).total, { timeout: 60_000 }).toBe(SESSIONS);
  expect(way.read()).toBe(0);
}, 120_000);

test('the first page is of those that were written to last, in order, and reads little else', async () => {
  const written = Array.from({ length: 20 }, (_, at) => ids[at * 211] as string);
  const js = jetstream(bus.nc);
  for (const id of written) await js.publish(subjects.journal(sessionRef(id, tenant)), recordOf(id));
  const way = transport();
  const { sessions, next_cursor } = await way.listSessions({ limit: 20 });
  expect(sessions.map(({ session_id }) => session_id)).toEqual(written.reverse());
  expect(next_cursor).not.toBeNull();
  expect(way.read()).toBeLessThan(60);
});

test('page by page each session comes once', async () => {
  const way = transport();
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await way.listSessions({ limit: 500, cursor });
    seen.push(...page.sessions.map(({ session_id }) => session_id));
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  expect(seen).toHaveLength(SESSIONS);
  expect(new Set(seen)).toEqual(new Set(ids));
}, 120_000);

test('of one state the same order is told', async () => {
  const [first] = (await transport().listSessions({ limit: 1 })).sessions;
  const { sessions } = await transport().listSessions({ limit: 1, state: topState(first?.state ?? '') });
  expect(sessions).toEqual([first]);
});

test('a word of an older release is no place in the list', async () => {
  const cursor = Buffer.from(JSON.stringify(['2026-01-01T00:00:00.000Z', 'x'])).toString('base64url');
  await expect(transport().listSessions({ cursor })).rejects.toMatchObject({ code: 'invalid_field', field: 'cursor' });
});
