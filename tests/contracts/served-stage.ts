/**
 * A host and the instances of one service on a bus in memory. Both sides are the real ones; the time is virtual, and the
 * test moves it on.
 */
import {
  type Asking,
  createAsking,
  type Instances,
  onConnectionChange,
  RunningWork,
  type ServedAddress,
  type ServingWork,
  serveWork,
  type WorkClock,
} from '@coxswain/bus';
import { Heartbeat, SERVED_LIVENESS, subjects } from '@coxswain/protocol';
import { vi } from 'vitest';
import { FakeBus, FakeProcess } from './fake-connection.ts';
import type { Ending } from './served-endings.ts';
import { type ServedKindCase, tenant, workOf } from './served-kinds.ts';

/** One instance of the service. */
export interface StagedInstance {
  readonly id: string;
  readonly process: FakeProcess;
  readonly serving: ServingWork;
  /** Ends its oldest open work. */
  end(): void;
  /** From now on its work does not stop at an abort. */
  ignoreAborts(): void;
}

/** A start of the work. */
export interface Start {
  readonly instance: string;
  readonly atMs: number;
}

/** Work that was sent. */
export interface Asked {
  /** Undefined until it ends. */
  ending?: Ending;
  endedMs?: number;
}

/** A bus, a host and instances. */
export interface Stage {
  readonly bus: FakeBus;
  readonly host: FakeProcess;
  readonly asking: Asking;
  /** Every start of work, in order. */
  readonly starts: readonly Start[];
  /** The instances of these starts. */
  startedBy(): readonly string[];
  /** Starts another instance. */
  serve(id: string): Promise<StagedInstance>;
  ask(options?: { readonly signal?: AbortSignal; readonly effect?: string }): Asked;
}

/** How a stage is set up. Times in milliseconds. */
export interface StageOptions {
  /** The time that work takes. Default: until {@link StagedInstance.end}. */
  readonly takesMs?: number;
  readonly hookTimeoutMs?: number;
  readonly hopMs?: number;
  /** Whether the host receives no heartbeat. */
  readonly isDeaf?: boolean;
}

/** The clocks and timers that are virtual. `setImmediate` stays: {@link pass} waits for it. */
export function useVirtualTime(): void {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'Date'],
  });
}

/** Moves the virtual time on, from timer to timer. */
export async function pass(ms: number): Promise<void> {
  let isOver = false;
  setTimeout(() => {
    isOver = true;
  }, ms);
  while (!isOver) {
    await settled();
    vi.advanceTimersToNextTimer();
  }
  await settled();
}

// Twice: work that has just arrived waits for the first one.
async function settled(): Promise<void> {
  await new Promise((go) => setImmediate(go));
  await new Promise((go) => setImmediate(go));
}

/** Sets up a stage without instances. */
export function stage({ to, askWork }: ServedKindCase, options: StageOptions = {}): Stage {
  const { takesMs = Number.POSITIVE_INFINITY, hookTimeoutMs = 60_000, hopMs = 0, isDeaf = false } = options;
  const bus = new FakeBus();
  bus.hopMs = hopMs;
  const host = new FakeProcess(bus);
  const presence = presenceOf(host, to, isDeaf);
  const asking = createAsking(host.nc, presence, () => undefined, clockOf(host));
  const send = askWork({ nc: host.nc, asking, presence, hookTimeoutMs });
  const starts: Start[] = [];

  return {
    bus,
    host,
    asking,
    starts,
    startedBy: () => starts.map(({ instance }) => instance),
    async serve(id) {
      const process = new FakeProcess(bus);
      const open: (() => void)[] = [];
      let isDeaf = false;
      const run = (signal: AbortSignal) => {
        starts.push({ instance: id, atMs: performance.now() });
        return new Promise<string>((resolve, reject) => {
          const end = () => resolve(`by ${id}`);
          open.push(end);
          if (takesMs < Number.POSITIVE_INFINITY) process.after(takesMs, end);
          signal.addEventListener('abort', () => (isDeaf ? undefined : reject(signal.reason)));
        });
      };
      const work = new RunningWork(await workOf(to.kind, process.nc, hookTimeoutMs, run), { tenant });
      const serving = await process.owning(() =>
        serveWork(process.nc, {
          at: to,
          instance: id,
          work,
          heartbeat: () => ({}),
          announce: async () => undefined,
          problem: () => undefined,
          drainMs: 0,
        }),
      );
      const ignoreAborts = () => {
        isDeaf = true;
      };
      return { id, process, serving, end: () => open.shift()?.(), ignoreAborts };
    },
    ask({ signal = new AbortController().signal, effect = '3-0' } = {}) {
      const asked: Asked = {};
      void send(effect, signal).then((ending) => Object.assign(asked, { ending, endedMs: performance.now() }));
      return asked;
    },
  };
}

/** The clock of a process: its timers fire when it resumes, in order with its messages. */
function clockOf(process: FakeProcess): WorkClock {
  return {
    nowMs: () => performance.now(),
    after(delayMs, callback) {
      let isCancelled = false;
      process.after(delayMs, () => {
        if (!isCancelled) callback();
      });
      return () => {
        isCancelled = true;
      };
    },
  };
}

/** The instances by their heartbeats, as `watchPresence` of the adapter knows them. */
function presenceOf(host: FakeProcess, { kind, name }: ServedAddress, isDeaf: boolean): Instances {
  const heard = new Map<string, { readonly atMs: number; readonly state: Heartbeat['state'] }>();
  let announcedMs = performance.now();
  if (!isDeaf)
    host.nc.subscribe(subjects.heartbeats(kind), {
      callback(_error, message) {
        const id = message.subject.split('.').at(-1) as string;
        const { state } = Heartbeat.parse(message.json());
        if (message.subject !== subjects.heartbeat(kind, tenant, name, id)) return;
        if (state === 'gone') {
          heard.delete(id);
          announcedMs = Number.NEGATIVE_INFINITY;
        } else heard.set(id, { atMs: performance.now(), state });
      },
    });
  onConnectionChange(host.nc, {
    restored() {
      for (const [id, { state }] of heard) heard.set(id, { atMs: performance.now(), state });
    },
  });
  const silentMs = (id: string) => performance.now() - (heard.get(id)?.atMs ?? Number.NEGATIVE_INFINITY);
  const isSilent = (id: string) => silentMs(id) >= SERVED_LIVENESS.ttlMs;
  const living = () => [...heard.keys()].filter((id) => !isSilent(id));
  const serving = () =>
    living()
      .filter((id) => heard.get(id)?.state === 'serving')
      .sort((one, other) => silentMs(one) - silentMs(other));
  return {
    isServed: () => performance.now() - announcedMs < SERVED_LIVENESS.ttlMs || serving().length > 0,
    serving,
    living,
    silent: () => [...heard.keys()].filter(isSilent),
    forget: (_of, id) => void heard.delete(id),
    silentMs: (_of, id) => silentMs(id),
    listenedMs: () => Number.POSITIVE_INFINITY,
  };
}

/** A stage with two instances whose heartbeats the host has received. The first request goes to the first instance. */
export async function pair(kind: ServedKindCase, options: StageOptions = {}) {
  const on = stage(kind, options);
  const [first, other] = [await on.serve('a'), await on.serve('b')];
  await pass(1_000);
  return { ...on, first, other };
}
