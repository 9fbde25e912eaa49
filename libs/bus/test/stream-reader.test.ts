/** Reads of a stream whose replicas do not all serve what the leader reports. */
import { type Msg, MsgHdrsImpl } from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import { createStreamReader } from '../src/stream-reader.ts';
import type { Wire } from '../src/wire.ts';

interface Stored {
  readonly seq: number;
  readonly subject: string;
}

/** A replica: what its index reports, and what of that it serves. */
interface Replica {
  readonly index: readonly Stored[];
  readonly served: readonly Stored[];
}

const at = (seq: number, subject = 's.a'): Stored => ({ seq, subject });
const whole = (...index: Stored[]): Replica => ({ index, served: index });
const damaged = (replica: Replica, ...seqs: number[]): Replica => ({
  index: replica.index,
  served: replica.served.filter(({ seq }) => !seqs.includes(seq)),
});

const status = (code: number) => ({ data: new Uint8Array(), headers: Object.assign(new MsgHdrsImpl(code, '')) }) as Msg;
const json = (value: object) =>
  ({ data: Buffer.from(JSON.stringify(value)), string: () => JSON.stringify(value) }) as unknown as Msg;

function direct({ seq, subject }: Stored, pending: number): Msg {
  const headers = new MsgHdrsImpl();
  headers.set('Nats-Subject', subject);
  headers.set('Nats-Sequence', String(seq));
  headers.set('Nats-Time-Stamp', '2026-01-01T00:00:00Z');
  headers.set('Nats-Num-Pending', String(pending));
  return { data: Buffer.from(String(seq)), headers } as unknown as Msg;
}

/** A stream of a leader and replicas, which answer direct gets in turn. */
function stream(leader: Replica, replicas: readonly Replica[]) {
  let asked = 0;
  const counts = { leader: 0, info: 0, direct: 0 };
  const turn = () => {
    counts.direct++;
    return replicas[asked++ % replicas.length] as Replica;
  };
  const wire: Wire = {
    async request(subject, payload) {
      const text = Buffer.from(payload).toString();
      const query = (text === '' ? {} : JSON.parse(text)) as Record<string, never>;
      if (subject.startsWith('$JS.API.STREAM.INFO.')) {
        counts.info++;
        const names = leader.index.filter((one) => one.subject === query.subjects_filter).map((one) => one.subject);
        return json({ total: new Set(names).size, state: { subjects: Object.fromEntries(names.map((n) => [n, 1])) } });
      }
      if (subject.startsWith('$JS.API.STREAM.MSG.GET.')) {
        counts.leader++;
        const { last_by_subj: last, next_by_subj: next, seq = 0 } = query;
        const found = last
          ? leader.served.findLast((one) => one.subject === last)
          : leader.served.find((one) => one.subject === next && one.seq >= seq);
        if (!found) return json({ error: { code: 404, err_code: 10_037, description: 'no message found' } });
        return json({ message: { ...found, time: '2026-01-01T00:00:00Z', data: 'eA==' } });
      }
      const { served } = turn();
      const name = subject.split('.').slice(5).join('.');
      const found = name
        ? served.findLast((one) => one.subject === name)
        : served.find((one) => one.subject === query.next_by_subj && one.seq >= (query.seq ?? 0));
      return found ? direct(found, 0) : status(404);
    },
    async requestMany(_subject, payload, onAnswer) {
      const { seq, next_by_subj: name, batch } = JSON.parse(Buffer.from(payload).toString());
      const { index, served } = turn();
      const isWanted = (one: Stored) => one.subject === name && one.seq >= seq;
      let pending = index.filter(isWanted).length;
      const found = served.filter(isWanted).slice(0, batch);
      if (found.length === 0) return void onAnswer(status(404));
      for (const one of found) onAnswer(direct(one, --pending));
      onAnswer(status(204));
    },
  };
  return { reader: createStreamReader(wire, 'S'), counts };
}

const three = whole(at(1), at(2), at(3));

test('the newest message costs one read of the leader', async () => {
  const { reader, counts } = stream(three, [three]);
  expect((await reader.confirmedLast('s.a'))?.seq).toBe(3);
  expect(counts).toEqual({ leader: 1, info: 0, direct: 0 });
});

test('a subject that the leader does not report is not there', async () => {
  const { reader, counts } = stream(three, [three]);
  expect(await reader.confirmedLast('s.b')).toBeNull();
  expect(counts).toEqual({ leader: 1, info: 1, direct: 0 });
});

test('what the leader reports and cannot read comes from a replica that serves it', async () => {
  const broken = damaged(whole(at(1)), 1);
  const { reader } = stream(broken, [broken, broken, whole(at(1))]);
  expect((await reader.confirmedLast('s.a'))?.seq).toBe(1);
  expect((await reader.expectedNext('s.a', 1, 1)).seq).toBe(1);
});

test('what no replica serves is an error that names the stream, and is never left out', async () => {
  const broken = damaged(three, 1, 2, 3);
  const { reader } = stream(broken, [broken]);
  const error = { code: 'record_unreadable', stream: 'S', message: expect.stringContaining('s.a') };
  await expect(reader.confirmedLast('s.a')).rejects.toMatchObject({ ...error, seq: null });
  await expect(reader.expectedNext('s.a', 2, 3)).rejects.toMatchObject({ ...error, seq: 3 });
});

test('a message behind the one that is expected does not stand for it', async () => {
  const broken = damaged(three, 2);
  const { reader } = stream(broken, [broken, three]);
  expect((await reader.expectedNext('s.a', 2, 2)).seq).toBe(2);
});

test('a batch of a replica that steps over messages is read again from another', async () => {
  const { reader, counts } = stream(three, [damaged(three, 2), three]);
  expect((await reader.batch('s.a', 1, 10)).map(({ seq }) => seq)).toEqual([1, 2, 3]);
  expect(counts.direct).toBe(2);
});

test('a batch that ends at its limit, or with all that there is, is read once', async () => {
  const { reader, counts } = stream(three, [three]);
  expect(await reader.batch('s.a', 1, 2)).toHaveLength(2);
  expect(await reader.batch('s.a', 1, 10)).toHaveLength(3);
  expect(counts.direct).toBe(2);
});

test.each([
  { why: 'every replica steps over one', limit: 10, expected: [1, 3, 5, 7] },
  { why: 'the batch ends at its limit', limit: 3, expected: [1, 3, 5] },
])('a gapless batch is filled through the leader where $why', async ({ limit, expected }) => {
  const leader = whole(at(1), at(2, 's.b'), at(3), at(4, 's.b'), at(5), at(6, 's.b'), at(7));
  const { reader, counts } = stream(leader, [damaged(leader, 3)]);
  expect((await reader.gaplessBatch('s.a', 1, limit)).map(({ seq }) => seq)).toEqual(expected);
  expect(counts.leader).toBeLessThanOrEqual(limit);
});

test('a gapless batch of a sound replica does not ask the leader', async () => {
  const { reader, counts } = stream(three, [three]);
  expect(await reader.gaplessBatch('s.a', 1, 10)).toHaveLength(3);
  expect(counts).toEqual({ leader: 0, info: 0, direct: 1 });
});
