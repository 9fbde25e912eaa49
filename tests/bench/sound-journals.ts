/** Whether anything was doubled or lost: journals, held against what was sent, what was seen, and what tools did. */
import { readFile } from 'node:fs/promises';
import { createNatsBlobs, createNatsJournal } from '@coxswain/adapter-nats';
import { isDelivery, type JournalRecord, type SessionRef } from '@coxswain/protocol';
import { readRecord, replayJournal } from '@coxswain/session';
import type { NatsConnection } from '@nats-io/nats-core';
import { steerId } from './running-sessions.ts';

/** What is known of the sessions from elsewhere. */
export interface Expected {
  /** Each session was steered once at each of these times, in this order. */
  readonly steered: readonly string[];
  /** Records that were heard of as durable. */
  readonly heard: ReadonlyMap<string, Uint8Array | null>;
  /** Where calls left their keys as they began. */
  readonly beganFile: string;
}

/** What was found. */
export interface Soundness {
  readonly records: number;
  /** Calls whose outcome a crash took away, and of which their models were told so. */
  readonly interrupted: number;
  /** What is not as it has to be, in words: each a defect. */
  readonly faults: readonly string[];
}

const READ_AT_ONCE = 16;

/** Reads every journal, replays it byte for byte, and counts. */
export async function checkJournals(
  nc: NatsConnection,
  refs: readonly SessionRef[],
  expected: Expected,
): Promise<Soundness> {
  const faults: string[] = await repeatedCalls(expected.beganFile);
  const blobs = createNatsBlobs(nc);
  const journal = createNatsJournal(nc);
  let records = 0;
  let interrupted = 0;
  const left = refs.values();
  const reader = async () => {
    for (const ref of left) {
      const bytes: Uint8Array[] = [];
      const read: JournalRecord[] = [];
      for await (const stored of journal.read(ref)) {
        bytes.push(stored.bytes);
        read.push(await readRecord(stored.bytes, blobs));
      }
      records += bytes.length;
      const replayed = await replayJournal(bytes, blobs).catch((error: Error) => error);
      if (replayed instanceof Error) faults.push(`${ref.sessionId} does not replay: ${replayed.message}`);
      const heard = expected.heard.get(ref.sessionId);
      if (heard && !bytes.some((stored) => Buffer.compare(stored, heard) === 0))
        faults.push(`${ref.sessionId} has lost a record that was durable`);
      const found = faultsOf(read, expected.steered);
      interrupted += found.interrupted;
      for (const fault of found.faults) faults.push(`${ref.sessionId}: ${fault}`);
    }
  };
  await Promise.all(Array.from({ length: READ_AT_ONCE }, reader));
  return { records, interrupted, faults };
}

function faultsOf(records: readonly JournalRecord[], steered: readonly string[]) {
  const faults: string[] = [];
  const events = records.flatMap((record) => record.events);
  if (records.some(({ n }, index) => n !== index + 1)) faults.push('its records are not dense');
  const ends = events.filter(({ type }) => type === 'agent_end').length;
  if (ends !== 1) faults.push(`its run has ended ${ends} times`);
  const received = events.flatMap((event) => (event.type === 'steering_received' ? [event.command_id] : []));
  if (received.join() !== steered.map(steerId).join()) faults.push(`it was steered by ${received.join() || 'nothing'}`);
  const delivered = events.flatMap((event) => (isDelivery(event) ? [event.command_id] : []));
  if (new Set(delivered).size !== delivered.length) faults.push('a message was delivered twice');
  const results = new Map<string, number>();
  let interrupted = 0;
  for (const event of events) {
    if (event.type === 'message_complete' && !event.message.partial)
      for (const part of event.message.content) if (part.type === 'call') results.set(part.call_id, 0);
    if (event.type !== 'call_ended') continue;
    results.set(event.call_id, (results.get(event.call_id) ?? Number.NaN) + 1);
    if (event.status === 'interrupted') interrupted++;
  }
  for (const [call, count] of results) if (count !== 1) faults.push(`call ${call} has ${count} results`);
  return { faults, interrupted };
}

/** A call of `pause` that began twice: it does not say that it may. */
async function repeatedCalls(beganFile: string): Promise<string[]> {
  const began = new Set<string>();
  const faults: string[] = [];
  for (const line of (await readFile(beganFile, 'utf8')).split('\n')) {
    if (!line.startsWith('pause ')) continue;
    if (began.has(line)) faults.push(`a call ran again that must not: ${line}`);
    began.add(line);
  }
  return faults;
}
