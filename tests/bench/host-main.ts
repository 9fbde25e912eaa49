/**
 * The host of the bench: one process, as a user's would be, with instant models and tools in it. Whoever forked it
 * drives it over IPC, and it ends with them.
 */

import { appendFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { createIds, createSystemClock } from '@coxswain/adapter-memory';
import {
  connectNats,
  createNatsActiveSessions,
  createNatsBlobs,
  createNatsHooks,
  createNatsHostChannel,
  createNatsInbox,
  createNatsJournal,
  createNatsPublisher,
  createNatsSender,
  createNatsSessionIndex,
  createNatsSnapshots,
  createNatsTimers,
  ensureStreams,
} from '@coxswain/adapter-nats';
import type { CommandInbox, Hooks, Journal, ModelRequest } from '@coxswain/ports';
import {
  DEFAULT_TENANT,
  type Message,
  parseReturn,
  RECORD_VERSION,
  type SessionRef,
  sessionRef,
  textOf,
} from '@coxswain/protocol';
import { createSessionHost, type HostOptions } from '@coxswain/session';
import { answerText, instantModels, instantTools } from './instant-agents.ts';
import { monotonicMs } from './monotonic.ts';
import {
  type AskedBytes,
  rawLoad,
  rawRequest,
  rawRequestTimesAfterAppends,
  rawTurns,
  takeRawCommands,
} from './raw-path.ts';

/** How a host of the bench is opened. */
export interface HostSettings {
  readonly url: string;
  readonly token: string;
  readonly options?: Pick<HostOptions, 'name' | 'passivateAfterMs' | 'sweepEveryMs'> | undefined;
  /** Where each call that takes its time leaves its key as it begins, a line each, before anything else of it is done. */
  readonly beganFile?: string | undefined;
}

/** What the driver may ask of the host. */
export interface HostCalls {
  open(arg: HostSettings): Promise<null>;
  /** The durations of the turns since the last time, milliseconds, by session. */
  takeTurnTimes(arg: null): Promise<Record<string, number[]>>;
  rawTurns(arg: { turns: number; recordBytes: number }): Promise<number[]>;
  takeRawCommands(arg: { id: string; recordBytes: number }): Promise<null>;
  /** From the acknowledgement of each `hook_call` to its parsed verdict since the last time, milliseconds. */
  takeConsultTimes(arg: null): Promise<number[]>;
  /** Resolves when so many hooks are registered and served. */
  hooksKnown(arg: { count: number }): Promise<null>;
  /** Raw requests, each after a raw append. @returns milliseconds of each request. */
  rawRequests(arg: { times: number; bytes: AskedBytes }): Promise<number[]>;
  /** Reads a session's snapshot and what lies behind it, by the least code. @returns milliseconds. */
  rawLoad(arg: { sessionId: string }): Promise<number>;
  /** From the first delivery for a session since the last time, until its journal was read to its end, milliseconds. */
  takeWakeTimes(arg: null): Promise<number[]>;
  /** How many sessions it holds. */
  live(arg: null): Promise<number>;
  /** What this process holds, after a collection of everything that may go. It has to run with --expose-gc. */
  memory(arg: null): Promise<HostMemory>;
  /** CPU milliseconds of this process so far. */
  cpuMs(arg: null): Promise<number>;
  stop(arg: null): Promise<null>;
}

/** Bytes of the host's process, and how many sessions it holds. */
export interface HostMemory {
  readonly heapBytes: number;
  readonly externalBytes: number;
  readonly residentBytes: number;
  readonly live: number;
}

/** What the host says by itself. */
export type HostNews =
  /** A session's run has ended; its newest record is durable. */
  | { readonly news: 'ended'; readonly sessionId: string; readonly n: number }
  /** A marked message stands in the request that a model has just been given. */
  | { readonly news: 'seen'; readonly text: string; readonly atMs: number }
  /** A waiting call's signal has aborted. */
  | { readonly news: 'aborted'; readonly callId: string; readonly atMs: number }
  | { readonly news: 'log'; readonly text: string };

const untold: HostNews[] = [];

/** Tells the driver, with all other news of this turn of the event loop: a message takes 60 microseconds. */
const tell = (news: HostNews) => {
  if (untold.push(news) === 1)
    setImmediate(() => {
      const all = untold.splice(0);
      if (process.connected) process.send?.(all);
    });
};

const problem = (fields: object, message: string) =>
  tell({ news: 'log', text: `${message} ${JSON.stringify(fields)}` });
const log = { debug: () => undefined, info: () => undefined, warn: problem, error: problem };

const turnTimes = new Map<string, number[]>();
const askedAtMs = new Map<string, number>();

/** A turn lasts from one request to the session's next. */
function modelAsked(request: ModelRequest): void {
  const nowMs = performance.now();
  const before = askedAtMs.get(request.sessionId);
  askedAtMs.set(request.sessionId, nowMs);
  // The first request of a run follows its prompt, not a turn.
  if (before !== undefined && request.turn > 1) {
    const times = turnTimes.get(request.sessionId);
    if (times) times.push(nowMs - before);
    else turnTimes.set(request.sessionId, [nowMs - before]);
  }
}

function newestSeen(message: Message | undefined): void {
  if (message?.role !== 'user') return;
  const text = textOf(message);
  if (text.startsWith('steer ')) tell({ news: 'seen', text, atMs: monotonicMs() });
}

const consultTimes: number[] = [];
let isConsulting = false;
const acknowledgedAtMs = new Map<string, number>();

/** Hooks, timed: parsing the return is part of what is measured, so it is parsed here once more. */
function timed(hooks: Hooks): Hooks {
  return {
    table: (tenant) => hooks.table(tenant),
    onChange: (changed) => hooks.onChange?.(changed) ?? (() => undefined),
    async ask(request, signal) {
      const reply = await hooks.ask(request, signal);
      if (reply.status === 'returned') parseReturn(request.registration.point, reply.raw);
      const beganMs = acknowledgedAtMs.get(request.ref.sessionId);
      if (beganMs !== undefined) consultTimes.push(performance.now() - beganMs);
      return reply;
    },
  };
}

/** The end of a record that ends a session. */
const ENDED = Buffer.from(`,"state":"stopped","v":${RECORD_VERSION}}`);

function appended(ref: SessionRef, bytes: Uint8Array): void {
  const acknowledgedMs = performance.now();
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isConsulting && text.includes('"type":"hook_call"')) acknowledgedAtMs.set(ref.sessionId, acknowledgedMs);
  if (!text.includes('"type":"agent_end"')) return;
  const { n } = JSON.parse(text.toString()) as { n: number };
  tell({ news: 'ended', sessionId: ref.sessionId, n });
}

/** The journal, watched for the ends of runs: hearing of them from the bus would cost what is being measured. */
function watched(journal: Journal): Journal {
  return {
    append(ref, bytes, fence) {
      const appending = journal.append(ref, bytes, fence);
      // Most records are only compared by their last bytes: what is measured is the host.
      const isEnd = ENDED.equals(bytes.subarray(-ENDED.length));
      if (isEnd || isConsulting) void appending.then(({ status }) => status === 'stored' && appended(ref, bytes));
      return appending;
    },
    firstAfter: (ref, fence) => journal.firstAfter(ref, fence),
    async *read(ref, fence) {
      yield* journal.read(ref, fence);
      // Whoever reads asks for the next record once it has taken the one before in.
      const rungMs = rungAtMs.get(ref.sessionId);
      if (rungMs !== undefined) wakeTimes.push(performance.now() - rungMs);
      rungAtMs.delete(ref.sessionId);
    },
    last: (ref) => journal.last(ref),
    sessions: (tenant) => journal.sessions(tenant),
    sessionsOf: (partition) => journal.sessionsOf(partition),
  };
}

const wakeTimes: number[] = [];
/** When it rang for a session whose journal has not been read since. */
const rungAtMs = new Map<string, number>();

/** The inbox, watched for what wakes sessions: those that are in memory read no journal, and leave nothing behind here. */
function listened(inbox: CommandInbox, isWatched: () => boolean): CommandInbox {
  return {
    ...inbox,
    open: (handlers, partitions) =>
      inbox.open(
        {
          ...handlers,
          notify(notification) {
            if (isWatched()) rungAtMs.set(notification.ref.sessionId, performance.now());
            handlers.notify(notification);
          },
        },
        partitions,
      ),
  };
}

async function open({ url, token, options, beganFile }: HostSettings) {
  const nc = await connectNats({ servers: url, token, name: 'bench-host' });
  await ensureStreams(nc);
  const hooks = await createNatsHooks(nc, log);
  const clock = createSystemClock();
  const watch = {
    modelAsked,
    newestSeen,
    waitAborted: ({ callId }: { callId: string }) => tell({ news: 'aborted', callId, atMs: monotonicMs() }),
    pauseBegan: ({ tool, idempotencyKey }: { tool: string; idempotencyKey: string }) => {
      if (beganFile !== undefined) appendFileSync(beganFile, `${tool} ${idempotencyKey}\n`);
    },
  };
  const step = (payload: string) => rawRequest(nc, payload);
  const host = createSessionHost(
    {
      journal: watched(createNatsJournal(nc)),
      inbox: listened(await createNatsInbox(nc, log), () => watchesWakes),
      snapshots: createNatsSnapshots(nc),
      timers: createNatsTimers(nc),
      blobs: createNatsBlobs(nc),
      hostChannel: createNatsHostChannel(nc, log),
      active: createNatsActiveSessions(nc),
      index: createNatsSessionIndex(nc),
      publisher: createNatsPublisher(nc, log),
      sender: await createNatsSender(nc),
      models: instantModels(watch, step),
      tools: instantTools(watch, step),
      personas: { find: async () => null, names: async () => [] },
      hooks: timed(hooks),
      clock,
      ids: createIds(clock),
      log,
      defaultRoot: tmpdir(),
    },
    options,
  );
  await host.start();
  return { nc, host, hooks };
}

let watchesWakes = false;
let opened: Awaited<ReturnType<typeof open>> | null = null;

function connection() {
  if (!opened) throw new Error('the host is not open');
  return opened.nc;
}

const calls: HostCalls = {
  async open(arg) {
    opened = await open(arg);
    return null;
  },
  async takeTurnTimes() {
    const taken = Object.fromEntries(turnTimes);
    turnTimes.clear();
    return taken;
  },
  rawTurns: ({ turns, recordBytes }) => rawTurns(connection(), turns, Buffer.alloc(recordBytes, 'z'), answerText),
  async takeRawCommands({ id, recordBytes }) {
    takeRawCommands(connection(), id, Buffer.alloc(recordBytes, 'z'));
    return null;
  },
  async takeConsultTimes() {
    return consultTimes.splice(0);
  },
  async hooksKnown({ count }) {
    isConsulting = true;
    const known = () => opened?.hooks.table(DEFAULT_TENANT).filter(({ unavailable }) => !unavailable).length === count;
    while (!known()) await sleep(20);
    return null;
  },
  rawRequests: ({ times, bytes }) => rawRequestTimesAfterAppends(connection(), times, bytes),
  rawLoad: ({ sessionId }) => rawLoad(connection(), sessionRef(sessionId)),
  async takeWakeTimes() {
    watchesWakes = true;
    return wakeTimes.splice(0);
  },
  async live() {
    return opened?.host.live ?? 0;
  },
  async memory() {
    if (!globalThis.gc) throw new Error('memory is asked of a host without --expose-gc');
    // What is remembered of sessions to time them is no part of what they cost.
    for (const timed of [askedAtMs, turnTimes, acknowledgedAtMs, rungAtMs]) timed.clear();
    // Twice: what finalizers let go of in the first goes in the second.
    globalThis.gc();
    await sleep(50);
    globalThis.gc();
    const { heapUsed, external, rss } = process.memoryUsage();
    return { heapBytes: heapUsed, externalBytes: external, residentBytes: rss, live: opened?.host.live ?? 0 };
  },
  async cpuMs() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  },
  async stop() {
    await opened?.host.stop(1_000);
    await opened?.nc.close();
    // After the answer: a profile, if one was asked for, is written at the exit.
    setTimeout(() => process.exit(0), 20);
    return null;
  },
};

process.on('message', async (message: { id: number; call: keyof HostCalls; arg: never }) => {
  try {
    process.send?.({ re: message.id, value: await calls[message.call](message.arg) });
  } catch (error) {
    process.send?.({ re: message.id, error: String((error as Error).stack ?? error) });
  }
});
process.on('disconnect', () => process.exit(0));
tell({ news: 'log', text: 'up' });
