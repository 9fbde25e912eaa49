/**
 * What the bus itself costs, by a client that does nothing but the requests: the measure for everything that stands on
 * it. The raw streams have the configuration of the real ones.
 */
import {
  JOURNAL_STREAMS,
  journalStreamOf,
  PARTITIONS_PER_JOURNAL_STREAM,
  partitionOf,
  type SessionRef,
  STREAMS,
  subjects,
} from '@coxswain/protocol';
import { createInbox, headers, type NatsConnection } from '@nats-io/nats-core';

const raw = {
  journal: (index: number) => `RAW_JOURNAL_${index}`,
  commands: 'RAW_COMMANDS',
  consumer: 'raw',
  journals: (index: number) => `raw.jrn.${index}.*`,
  appendSubject: (id: string) => `raw.jrn.${Math.floor(partitionOf(id) / PARTITIONS_PER_JOURNAL_STREAM)}.${id}`,
  eventSubject: (id: string) => `raw.events.${id}`,
  commandSubject: (id: string) => `raw.cmd.${id}`,
  echo: 'raw.echo',
  sized: (bytes: number | '*') => `raw.sized.${bytes}`,
} as const;

/** Makes the raw streams beside the real ones, as copies of their configuration. */
export async function makeRawStreams(nc: NatsConnection): Promise<void> {
  const journal = await configOf(nc, JOURNAL_STREAMS[0] as string);
  for (const index of JOURNAL_STREAMS.keys()) {
    await ask(nc, `$JS.API.STREAM.CREATE.${raw.journal(index)}`, {
      ...journal,
      name: raw.journal(index),
      subjects: [raw.journals(index)],
      republish: { src: raw.journals(index), dest: raw.eventSubject('{{wildcard(1)}}') },
    });
  }
  const { subject_transform: _, sources: __, ...commands } = await configOf(nc, STREAMS.commands);
  await ask(nc, `$JS.API.STREAM.CREATE.${raw.commands}`, {
    ...commands,
    name: raw.commands,
    subjects: [raw.commandSubject('*')],
  });
  await ask(nc, `$JS.API.CONSUMER.CREATE.${raw.commands}.${raw.consumer}`, {
    stream_name: raw.commands,
    config: { durable_name: raw.consumer, ack_policy: 'explicit', headers_only: true, ack_wait: 3e9 },
  });
}

/** Appends after `fence` and gives the new fence. */
export async function rawAppend(nc: NatsConnection, id: string, bytes: Uint8Array, fence: number): Promise<number> {
  const fenced = headers();
  fenced.set('Nats-Expected-Last-Subject-Sequence', String(fence));
  const answer = await nc.request(raw.appendSubject(id), bytes, { timeout: 10_000, headers: fenced });
  const { seq, error } = JSON.parse(answer.string()) as { seq?: number; error?: { description: string } };
  if (seq === undefined) throw new Error(`raw append: ${error?.description}`);
  return seq;
}

let rawIds = 0;

/** Appends one after another for each of `writers` at once. @returns appends per second. */
export async function rawAppendsPerSecond(
  nc: NatsConnection,
  writers: number,
  appendsEach: number,
  bytes: Uint8Array,
): Promise<number> {
  const run = ++rawIds;
  const beganMs = performance.now();
  await Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      let fence = 0;
      for (let i = 0; i < appendsEach; i++)
        fence = await rawAppend(nc, `w${process.pid}-${run}-${writer}`, bytes, fence);
    }),
  );
  return (writers * appendsEach * 1_000) / (performance.now() - beganMs);
}

/** Reads a session's snapshot, and then what its journal holds behind that. @returns milliseconds. */
export async function rawLoad(nc: NatsConnection, ref: SessionRef): Promise<number> {
  const beganMs = performance.now();
  const last = `$JS.API.DIRECT.GET.${STREAMS.snapshots}.${subjects.snapshot(ref)}`;
  const snapshot = await nc.request(last, '', { timeout: 10_000 });
  const { fence } = JSON.parse(snapshot.string()) as { fence?: number };
  if (fence === undefined) throw new Error(`${ref.sessionId} has no snapshot`);
  const query = JSON.stringify({ seq: fence + 1, next_by_subj: subjects.journal(ref) });
  await nc.request(`$JS.API.DIRECT.GET.${journalStreamOf(ref.sessionId)}`, query, { timeout: 10_000 });
  return performance.now() - beganMs;
}

/** Answers raw requests on this connection. */
export function answerRawRequests(nc: NatsConnection): void {
  nc.subscribe(raw.echo, {
    callback(error, message) {
      if (!error) message.respond(message.data);
    },
  });
}

/** Answers requests that say how long their answer is to be, as one of a group of workers. */
export function answerSizedRequests(nc: NatsConnection): void {
  nc.subscribe(raw.sized('*'), {
    queue: 'raw',
    callback(error, message) {
      if (!error) message.respond('a'.repeat(Number(message.subject.split('.').at(-1))));
    },
  });
}

/** One raw request and its reply. */
export async function rawRequest(nc: NatsConnection, payload: string): Promise<void> {
  await nc.request(raw.echo, payload, { timeout: 10_000 });
}

/** The bus's share of a plain turn, `turns` times: two fenced appends, two request/replies. @returns milliseconds of each. */
export async function rawTurns(
  nc: NatsConnection,
  turns: number,
  record: Uint8Array,
  payload: string,
): Promise<number[]> {
  const id = `t${process.pid}-${++rawIds}`;
  const samples: number[] = [];
  let fence = 0;
  for (let i = 0; i < turns; i++) {
    const beganMs = performance.now();
    await rawRequest(nc, payload);
    fence = await rawAppend(nc, id, record, fence);
    await rawRequest(nc, payload);
    fence = await rawAppend(nc, id, record, fence);
    samples.push(performance.now() - beganMs);
  }
  return samples;
}

/** Median milliseconds of one raw request/reply. */
export async function rawRequestTimes(nc: NatsConnection, times: number): Promise<number[]> {
  const samples: number[] = [];
  for (let i = 0; i < times; i++) {
    const beganMs = performance.now();
    await rawRequest(nc, 'x');
    samples.push(performance.now() - beganMs);
  }
  return samples;
}

/** What goes over the bus for one question of a worker: the record before it, the request and the answer, in bytes. */
export interface AskedBytes {
  readonly record: number;
  readonly question: number;
  readonly answer: number;
}

/**
 * Raw requests to a group of workers, each right after an append, as a consult is: whoever answers has been asleep
 * meanwhile, and has to be woken. @returns milliseconds of each request alone.
 */
export async function rawRequestTimesAfterAppends(
  nc: NatsConnection,
  times: number,
  { record, question, answer }: AskedBytes,
): Promise<number[]> {
  const id = `q${process.pid}-${++rawIds}`;
  const [appended, payload, subject] = [Buffer.alloc(record, 'z'), 'q'.repeat(question), raw.sized(answer)];
  const samples: number[] = [];
  let fence = 0;
  for (let i = 0; i < times; i++) {
    fence = await rawAppend(nc, id, appended, fence);
    const beganMs = performance.now();
    await nc.request(subject, payload, { timeout: 10_000 });
    samples.push(performance.now() - beganMs);
  }
  return samples;
}

/**
 * The host's part of the raw steering path: a delivery, a direct get, an append; what is appended is republished.
 * @param record what is appended, with the command's own text in front.
 */
export function takeRawCommands(nc: NatsConnection, id: string, record: Uint8Array): void {
  let fence = 0;
  const inbox = createInbox();
  nc.subscribe(inbox, {
    callback(error, delivery) {
      // Status messages of the pull have no reply subject.
      if (error || !delivery.reply) return;
      void take(Number(delivery.reply.split('.')[5]), delivery.reply);
    },
  });
  const pull = JSON.stringify({ batch: 100_000, expires: 600e9 });
  nc.publish(`$JS.API.CONSUMER.MSG.NEXT.${raw.commands}.${raw.consumer}`, pull, { reply: inbox });

  async function take(seq: number, ackSubject: string): Promise<void> {
    const query = JSON.stringify({ seq, next_by_subj: raw.commandSubject(id) });
    const command = await nc.request(`$JS.API.DIRECT.GET.${raw.commands}`, query, { timeout: 10_000 });
    fence = await rawAppend(nc, id, Buffer.concat([command.data, record]), fence);
    nc.publish(ackSubject);
  }
}

/** Publishes one raw command. */
export function publishRawCommand(nc: NatsConnection, id: string, text: string): void {
  nc.publish(raw.commandSubject(id), text);
}

/** Where raw records are live. */
export function rawEventSubject(id: string): string {
  return raw.eventSubject(id);
}

async function configOf(nc: NatsConnection, stream: string): Promise<Record<string, unknown>> {
  const { config } = await ask(nc, `$JS.API.STREAM.INFO.${stream}`);
  return config as Record<string, unknown>;
}

async function ask(nc: NatsConnection, subject: string, body?: object): Promise<Record<string, unknown>> {
  const answer = await nc.request(subject, body ? JSON.stringify(body) : '', { timeout: 10_000 });
  const value = JSON.parse(answer.string()) as Record<string, unknown> & { error?: { description: string } };
  if (value.error) throw new Error(`${subject}: ${value.error.description}`);
  return value;
}
