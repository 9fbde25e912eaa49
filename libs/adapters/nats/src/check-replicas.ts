/**
 * Verifies the replicas of {@link CHECKED_STREAMS} by reading the first, the last and some random messages from each
 * server that has a replica. A status proves nothing: a server reports a stream as current although it cannot read the
 * stream's blocks.
 *
 * C1  A finding was seen in three looks in a row. Replicas differ for a moment while messages are appended, deleted or
 *     replicated. A stream that does not answer at all is reported at once: its requests have already waited. A look
 *     ends when a server does not answer. A stream is unchecked after {@link CHECK_TIMEOUT_MS}.
 * C2  Replicas are compared with each other, and each replica with its own index. The index also shows messages that
 *     all replicas have lost.
 * C3  Nothing is written, and no leader moves. Reads are bounded: each look reads at most {@link SAMPLES} + 2 windows
 *     per replica. A window has at most {@link WINDOW} messages and {@link WINDOW_BYTES} bytes. One more message may be
 *     read after it.
 */
import { setTimeout } from 'node:timers/promises';
import { NatsUnavailableError, nullIfNoStream, streamInfo } from '@coxswain/bus';
import { BLOBS_STREAM, JOURNAL_STREAMS, STREAMS } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { differencesIn, type ReplicaWindow, readWindow } from './compare-replicas.ts';
import { openTracedReads, type TracedReads } from './traced-reads.ts';

/** A fault of a replica. */
export interface ReplicaFinding {
  readonly stream: string;
  /**
   * `unreadable`: its index reports messages that it does not serve. `missing`: other replicas serve a message that it
   * lacks. `differs`: it serves other bytes than most replicas, or counts another number of messages than its leader.
   * `lagging`: it is behind its leader. `offline`: its server is down. `unchecked`: it did not answer, or the stream
   * could not be read.
   */
  readonly kind: 'unreadable' | 'missing' | 'differs' | 'lagging' | 'offline' | 'unchecked';
  /** The name of the server that has the replica; null if the stream as a whole does not answer. */
  readonly server: string | null;
  /** Sequence of the first affected message; null if it is unknown. */
  readonly seq: number | null;
  readonly message: string;
  readonly remedy: string;
}

/** The result of checking one stream. */
export interface CheckedStream {
  readonly stream: string;
  /** Names of the servers whose replicas were read. */
  readonly servers: readonly string[];
  readonly findings: readonly ReplicaFinding[];
}

/** Concurrency, pauses and cancellation of a check. */
export interface CheckPace {
  /** Number of streams that are checked at the same time. Default 1. */
  readonly atOnce?: number | undefined;
  /** Pause between streams, milliseconds. Default 0. */
  readonly pauseMs?: number | undefined;
  /** Pause between the looks that confirm a finding, milliseconds. Default {@link CONFIRM_MS}. */
  readonly confirmMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The checked streams: all but the bucket of heartbeats, which is in memory and keeps them for one second. */
export const CHECKED_STREAMS: readonly string[] = [
  ...JOURNAL_STREAMS,
  STREAMS.commands,
  STREAMS.timers,
  STREAMS.snapshots,
  STREAMS.sessions,
  `KV_${STREAMS.registry}`,
  `KV_${STREAMS.active}`,
  BLOBS_STREAM,
];

/** Number of random windows of a stream, in addition to its first and its last messages. */
const SAMPLES = 4;
/** Maximum messages of one window. */
const WINDOW = 16;
const WINDOW_BYTES = 256 * 1024;
/** Number of consecutive looks that must show a finding (C1). */
const LOOKS = 3;
/**
 * Pause between looks, milliseconds. All looks together exceed the two seconds that a new follower needs to answer
 * reads.
 */
const CONFIRM_MS = 1_500;
/** Timeout for one stream, milliseconds. After it, the stream is reported as `unchecked`. */
const CHECK_TIMEOUT_MS = 30_000;

interface StreamAnswer {
  readonly state?: { readonly first_seq: number; readonly last_seq: number; readonly messages: number };
  readonly config?: { readonly allow_direct?: boolean };
  readonly cluster?: {
    readonly leader?: string;
    readonly replicas?: readonly {
      readonly name: string;
      readonly current?: boolean;
      readonly offline?: boolean;
      readonly lag?: number;
    }[];
  };
}

/**
 * Checks the replicas of {@link CHECKED_STREAMS}. A stream that does not answer is yielded as `unchecked`, and the
 * check continues with the next one.
 * @throws NatsUnavailableError if the connection is closed; NatsRefusedError; NotPermittedError for a user without
 *   permission to read all streams.
 */
export async function* checkReplicas(
  nc: NatsConnection,
  { atOnce = 1, pauseMs = 0, confirmMs = CONFIRM_MS, signal }: CheckPace = {},
): AsyncGenerator<CheckedStream, void, undefined> {
  const reads = openTracedReads(nc);
  const started: Promise<CheckedStream | null>[] = [];
  const check = (stream: string) => {
    const checked = checkStream(nc, reads, stream, confirmMs).catch((error: unknown) => {
      if (!(error instanceof NatsUnavailableError) || nc.isClosed()) throw error;
      return uncheckedStream(stream, error);
    });
    // The loop below awaits it, but may end before this stream's turn: avoid an unhandled rejection.
    checked.catch(() => undefined);
    started.push(checked);
  };
  try {
    for (let at = 0; at < CHECKED_STREAMS.length; at++) {
      if (signal?.aborted) return;
      for (const stream of CHECKED_STREAMS.slice(started.length, at + atOnce)) check(stream);
      const checked = await started[at];
      if (checked) yield checked;
      if (pauseMs > 0) await setTimeout(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    reads.close();
  }
}

/** @returns null if the stream does not exist, or allows no direct gets, so that its replicas cannot be read. */
async function checkStream(
  nc: NatsConnection,
  reads: TracedReads,
  stream: string,
  confirmMs: number,
): Promise<CheckedStream | null> {
  let confirmed = new Map<string, ReplicaFinding>();
  const servers = new Set<string>();
  const samples = Array.from({ length: SAMPLES }, () => Math.random());
  const deadlineMs = performance.now() + CHECK_TIMEOUT_MS;
  for (let look = 0; look < LOOKS; look++) {
    if (look > 0) await setTimeout(confirmMs);
    const info = await infoOf(nc, stream);
    if (!info?.state || info.config?.allow_direct !== true) return null;
    const found = await checkOnce(reads, stream, info, samples, servers, deadlineMs);
    const before = confirmed;
    confirmed = new Map([...found].filter(([key]) => look === 0 || before.has(key)));
    if (confirmed.size === 0) break;
  }
  return { stream, servers: [...servers].sort(), findings: firstOfEach([...confirmed.values()]) };
}

function uncheckedStream(stream: string, { message: why }: NatsUnavailableError): CheckedStream {
  const message = `the stream cannot be asked: ${why}`;
  const remedy = 'start the servers of the cluster that are down, then check again';
  return { stream, servers: [], findings: [{ stream, kind: 'unchecked', server: null, seq: null, message, remedy }] };
}

async function infoOf(nc: NatsConnection, stream: string): Promise<StreamAnswer | null> {
  return nullIfNoStream(streamInfo(nc, stream));
}

/** Looks once at a stream. @returns the faults, by a key that is the same in every look. */
async function checkOnce(
  reads: TracedReads,
  stream: string,
  { state, cluster }: StreamAnswer,
  samples: readonly number[],
  servers: Set<string>,
  deadlineMs: number,
): Promise<Map<string, ReplicaFinding>> {
  const found = new Map<string, ReplicaFinding>();
  const report = (finding: Omit<ReplicaFinding, 'stream' | 'remedy'>) =>
    found.set(`${finding.server} ${finding.kind} ${finding.seq}`, { ...finding, stream, remedy: remedyOf(finding) });
  const { first_seq: first = 0, last_seq: last = 0, messages = 0 } = state ?? {};
  const expected: string[] = cluster?.leader === undefined ? [] : [cluster.leader];
  for (const { name: server, offline, current, lag = 0 } of cluster?.replicas ?? []) {
    if (offline === true)
      report({
        kind: 'offline',
        server,
        seq: null,
        message: `server ${server} is down, so its replica was not checked`,
      });
    else if (current === false)
      report({
        kind: 'lagging',
        server,
        seq: null,
        message: `the replica on ${server} is ${lag} ${lag === 1 ? 'operation' : 'operations'} behind its leader`,
      });
    else expected.push(server);
  }
  if (messages === 0) return found;
  const span = last - first + 1;
  const places = [
    first,
    ...samples.map((share) => first + Math.floor(share * span)),
    Math.max(first, last - WINDOW / 2 + 1),
  ];
  for (const seq of new Set(places)) {
    if (performance.now() > deadlineMs)
      throw new NatsUnavailableError(`it was not read within ${CHECK_TIMEOUT_MS / 1_000} s`);
    const window = await readWindow(reads, stream, expected, { seq, batch: WINDOW, max_bytes: WINDOW_BYTES });
    for (const server of window.read.keys()) servers.add(server);
    reportDifferences(window, report);
    await compareWithIndex(reads, stream, window, report);
    if (seq === first) compareCounts(cluster?.leader, window, report);
    for (const server of window.silent)
      report({ kind: 'unchecked', server, seq: null, message: `the replica on ${server} did not respond` });
    // Each further read would wait for that server as well.
    if (window.silent.length > 0) break;
  }
  return found;
}

type Report = (finding: Omit<ReplicaFinding, 'stream' | 'remedy'>) => void;

/** Compares the messages that the replicas serve in one window. */
function reportDifferences(window: ReplicaWindow, report: Report): void {
  for (const { kind, server, seq, others } of differencesIn(window)) {
    const message =
      kind === 'missing'
        ? `the replica on ${server} does not serve message ${seq}, which ${others.join(', ')} serves`
        : `message ${seq} of the replica on ${server} differs from ${others.join(', ')}`;
    report({ kind, server, seq, message });
  }
}

/** Compares the messages that each replica serves with the count of its own index (C2). */
async function compareWithIndex(
  reads: TracedReads,
  stream: string,
  { seq, read: windows }: ReplicaWindow,
  report: Report,
): Promise<void> {
  const unreadable = (server: string, count: number, behind: number) =>
    report({
      kind: 'unreadable',
      server,
      seq: behind,
      message: `the index of the replica on ${server} counts ${count} ${count === 1 ? 'message' : 'messages'} from ${behind} on that it does not serve`,
    });
  const full: string[] = [];
  for (const [server, { messages, pending, reachedEnd }] of windows) {
    if (!reachedEnd) full.push(server);
    else if (pending > 0) unreadable(server, pending, (messages.at(-1)?.seq ?? seq - 1) + 1);
  }
  if (full.length === 0) return;
  const end = Math.min(...full.map((server) => windows.get(server)?.messages.at(-1)?.seq ?? seq));
  const next = await reads.ofEach(stream, full, { seq: end + 1, batch: 1, max_bytes: WINDOW_BYTES });
  for (const [server, window] of next) {
    const before = windows.get(server);
    if (!before) continue;
    const served = before.messages.filter((message) => message.seq <= end).length;
    const skipped = before.counted - served - window.counted;
    if (skipped > 0) unreadable(server, skipped, seq);
  }
}

/** Compares the number of messages in the replicas' indexes with the leader's. */
function compareCounts(leader: string | undefined, { read }: ReplicaWindow, report: Report): void {
  const leads = leader === undefined ? undefined : read.get(leader);
  if (!leads) return;
  for (const [server, { counted }] of read) {
    if (counted === leads.counted) continue;
    report({
      kind: 'differs',
      server,
      seq: null,
      message: `the replica on ${server} has ${counted} messages, its leader ${leader} has ${leads.counted}`,
    });
  }
}

/** Reduces findings to one per server and kind: the one with the lowest sequence. */
function firstOfEach(findings: readonly ReplicaFinding[]): ReplicaFinding[] {
  const first = new Map<string, ReplicaFinding>();
  for (const finding of findings) {
    const key = `${finding.server} ${finding.kind}`;
    const known = first.get(key);
    if (!known || (finding.seq ?? Number.POSITIVE_INFINITY) < (known.seq ?? Number.POSITIVE_INFINITY))
      first.set(key, finding);
  }
  return [...first.values()];
}

function remedyOf({ kind, server }: Pick<ReplicaFinding, 'kind' | 'server'>): string {
  switch (kind) {
    case 'offline':
      return `start server ${server}; its replicas catch up automatically`;
    case 'lagging':
    case 'unchecked':
      return `make sure that server ${server} runs and that the others reach it, then check again; a lagging replica catches up automatically`;
    default:
      return `if the other replicas are complete: stop server ${server}, move its JetStream store away, and start it again; it copies every stream from the others`;
  }
}
