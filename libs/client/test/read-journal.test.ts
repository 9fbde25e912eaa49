/** The newest record of a session, for a user that may not read through the leader: a replica may lag, or be damaged. */
import { sessionRef, subjects, tenantSubjects, tombstoneBytes } from '@coxswain/protocol';
import { jetstream } from '@nats-io/jetstream';
import { MsgHdrsImpl, type NatsConnection } from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import { type JournalBus, lastBytes, lastNumber } from '../src/read-journal.ts';

const ref = sessionRef('s1');
const record = (n: number) => JSON.stringify({ v: 1, n });
const tombstone = Buffer.from(
  tombstoneBytes({
    tombstone: 1,
    session_id: 's1',
    deleted_at: '2026-01-01T00:00:00.000Z',
    records: 3,
    last_hash: 'a'.repeat(64),
  }),
).toString();

/** A bus on which direct gets bring `served` in turn (null: 404), the last again and again. The leader's index counts `counts`. */
function busOf(served: readonly (string | null)[], counts: readonly number[]): JournalBus {
  const left = { served: [...served], counts: [...counts] };
  const next = <T>(of: T[]) => (of.length > 1 ? of.shift() : of[0]) as T;
  const nc = {
    isClosed: () => false,
    options: {},
    info: { version: '2.15.1', headers: true, max_payload: 1 << 20 },
    async request(subject: string) {
      if (subject.startsWith('$JS.API.DIRECT.GET.')) {
        const text = next(left.served);
        const headers = text === null ? new MsgHdrsImpl(404, '') : new MsgHdrsImpl();
        headers.set('Nats-Time-Stamp', '2026-01-01T00:00:00Z');
        return { data: Buffer.from(text ?? ''), headers };
      }
      expect(subject).toMatch(/^\$JS\.API\.STREAM\.INFO\./);
      const count = next(left.counts);
      const found = count === 0 ? {} : { [subjects.journal(ref)]: count };
      const text = JSON.stringify({ config: {}, state: { subjects: found } });
      return { data: Buffer.from(text), string: () => text, json: () => JSON.parse(text) };
    },
  } as unknown as NatsConnection;
  return { nc, js: jetstream(nc), inboxPrefix: tenantSubjects.inboxPrefix('default', 'viewer') };
}

test.each([
  { why: 'every replica is up to date', served: [record(3)], counts: [3], n: 3 },
  { why: 'the first replica lags', served: [record(2), record(2), record(3)], counts: [3], n: 3 },
  { why: 'the first replica has nothing', served: [null, record(3)], counts: [3], n: 3 },
  { why: 'a record is stored meanwhile', served: [record(4)], counts: [3, 4], n: 4 },
  { why: 'there is none', served: [null], counts: [0], n: 0 },
])('is the one that the leader counts, where $why', async ({ served, counts, n }) => {
  expect(await lastNumber(busOf(served, counts), ref)).toBe(n);
});

test('is the tombstone of a session whose records the leader has purged', async () => {
  const bytes = await lastBytes(busOf([record(3), record(3), tombstone], [1]), ref);
  expect(Buffer.from(bytes ?? []).toString()).toBe(tombstone);
});

test('that no replica serves is an error, and not the one before it', async () => {
  await expect(lastBytes(busOf([record(2)], [3]), ref)).rejects.toMatchObject({ code: 'record_unreadable' });
});
