/**
 * A reader whose request for messages is lost, as it may be at a change of leaders, asks again and sees every record. One whose
 * records are deleted while it reads comes to an end.
 */
import { readFile } from 'node:fs/promises';
import { createNatsJournal } from '@coxswain/adapter-nats';
import { orderedConsumer, storedMessages } from '@coxswain/bus';
import { journalStreamOf, type SessionRef, subjects } from '@coxswain/protocol';
import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import { followJournal, readJournal } from '../../libs/client/src/read-journal.ts';
import { busOfFile, withFault } from './contract-bus.ts';
import { bytes, freshSession } from './fresh-session.ts';

const bus = busOfFile();
const recorded = new URL('../traces/approval-for-good.jsonl', import.meta.url);

/** A session with some records. */
async function stored(): Promise<{ ref: SessionRef; records: number }> {
  const ref = freshSession();
  const journal = createNatsJournal(bus.nc);
  const lines = (await readFile(recorded, 'utf8')).trimEnd().split('\n');
  let fence = 0;
  for (const line of lines) {
    const appended = await journal.append(ref, bytes(line), fence);
    if (appended.status !== 'stored') throw new Error(`a record was not stored: ${appended.status}`);
    fence = appended.fence;
  }
  return { ref, records: lines.length };
}

/** The bus, where the first request for messages never reaches the server. */
function losingOne(): { readonly nc: NatsConnection; lost(): number } {
  let lost = 0;
  const nc = withFault(bus.nc, (method, [subject]) => {
    if (lost > 0 || method !== 'publish' || !String(subject).startsWith('$JS.API.CONSUMER.MSG.NEXT.')) return;
    lost++;
    return () => undefined;
  });
  return { nc, lost: () => lost };
}

test('whoever reads what is stored', { timeout: 20_000 }, async () => {
  const { ref, records } = await stored();
  const losing = losingOne();
  const read = [];
  for await (const { record } of readJournal(losing.nc, ref)) read.push(record.n);
  expect(read).toEqual(Array.from({ length: records }, (_, i) => i + 1));
  expect(losing.lost()).toBe(1);
});

test('a slow reader, for which at most 64 records wait', async () => {
  const { ref, records } = await stored();
  const requested: number[] = [];
  const counting = withFault(bus.nc, (method, [subject, body]) => {
    if (method === 'publish' && String(subject).startsWith('$JS.API.CONSUMER.MSG.NEXT.'))
      requested.push((JSON.parse(String(body)) as { batch: number }).batch);
    return undefined;
  });
  const read = [];
  for await (const { record } of readJournal(counting, ref)) read.push(record.n);
  expect(read).toHaveLength(records);
  expect(Math.max(...requested)).toBe(64);
});

test('whoever follows it', { timeout: 40_000 }, async () => {
  const { ref, records } = await stored();
  const losing = losingOne();
  const read = [];
  for await (const { record } of followJournal(losing.nc, ref)) if (read.push(record.n) === records) break;
  expect(read).toEqual(Array.from({ length: records }, (_, i) => i + 1));
  expect(losing.lost()).toBe(1);
});

test.each(['all of it', 'all behind the first'])(
  'whoever reads what is deleted before it is delivered: %s',
  { timeout: 20_000 },
  async (what) => {
    const { ref, records } = await stored();
    const stream = journalStreamOf(ref.sessionId);
    const source = { nc: bus.nc, stream, options: { filter_subjects: subjects.journal(ref) } };
    const consumer = await orderedConsumer(source);
    expect((await consumer.info(true)).num_pending).toBe(records);
    const manager = await jetstreamManager(bus.nc);
    const purge = () => manager.streams.purge(stream, { filter: subjects.journal(ref) });
    let read = 0;
    if (what === 'all of it') await purge();
    // One at a time: what was not asked for yet lies in the store.
    for await (const _ of storedMessages(source, consumer, { max_messages: 1 })) if (read++ === 0) await purge();
    expect(read).toBe(what === 'all of it' ? 0 : 1);
  },
);
