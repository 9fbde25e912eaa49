/** The newest record of a session, for a user that may not read through the leader: a replica may lag, or be damaged. */
import { sessionRef, subjects, tenantSubjects, tombstoneBytes } from '@coxswain/protocol';
import {
  type Msg,
  MsgHdrsImpl,
  type NatsConnection,
  type PublishOptions,
  type SubscriptionOptions,
} from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import { lastBytes, lastNumber } from '../src/read-journal.ts';

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

/** A connection on which direct gets bring `served` in turn (null: 404), the last again and again. The leader's index counts `counts`. */
function connectionOf(served: readonly (string | null)[], counts: readonly number[]): NatsConnection {
  const left = { served: [...served], counts: [...counts] };
  const next = <T>(of: T[]) => (of.length > 1 ? of.shift() : of[0]) as T;
  const answer = (subject: string) => {
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
    return { data: Buffer.from(text), string: () => text };
  };
  let deliver: SubscriptionOptions['callback'];
  return {
    isClosed: () => false,
    closed: () => new Promise(() => undefined),
    async *status() {},
    options: { inboxPrefix: tenantSubjects.inboxPrefix('default', 'viewer') },
    subscribe(_subject: string, { callback }: SubscriptionOptions) {
      deliver = callback;
      return { isClosed: () => false };
    },
    publish(subject: string, _payload: Uint8Array, { reply }: PublishOptions) {
      queueMicrotask(() => deliver?.(null, { subject: reply, ...answer(subject) } as unknown as Msg));
    },
  } as unknown as NatsConnection;
}

test.each([
  { why: 'every replica is up to date', served: [record(3)], counts: [3], n: 3 },
  { why: 'the first replica lags', served: [record(2), record(2), record(3)], counts: [3], n: 3 },
  { why: 'the first replica has nothing', served: [null, record(3)], counts: [3], n: 3 },
  { why: 'a record is stored meanwhile', served: [record(4)], counts: [3, 4], n: 4 },
  { why: 'there is none', served: [null], counts: [0], n: 0 },
])('is the one that the leader counts, where $why', async ({ served, counts, n }) => {
  expect(await lastNumber(connectionOf(served, counts), ref)).toBe(n);
});

test('is the tombstone of a session whose records the leader has purged', async () => {
  const bytes = await lastBytes(connectionOf([record(3), record(3), tombstone], [1]), ref);
  expect(Buffer.from(bytes ?? []).toString()).toBe(tombstone);
});

test('that no replica serves is an error, and not the one before it', async () => {
  await expect(lastBytes(connectionOf([record(2)], [3]), ref)).rejects.toMatchObject({ code: 'record_unreadable' });
});
