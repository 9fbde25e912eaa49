/**
 * Sessions that do nothing. Many are run once and leave memory, and it is measured what each of them costs: in the host,
 * on the server and on its disk; how soon one is woken; how soon a host starts with them; and how long a list of them
 * takes. The same for sessions that wait for an approval. And the cost of one that is still in memory.
 *
 * Memory of the host is its heap and what hangs on it after two full collections. Memory of the server is the resident
 * set of its process, beside that of the same server with a hundredth of the sessions: a while after the last write, when
 * the marks of notes that were taken back have gone; and after a restart, which leaves no garbage, and which its bar is for.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { connectNats } from '@coxswain/adapter-nats';
import {
  DEFAULT_TENANT,
  JOURNAL_STREAMS,
  type SessionRef,
  STREAMS,
  sessionRef,
  subjects,
  tenantSubjects,
} from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import type { Part } from './bench-part.ts';
import { type BenchServer, startBenchServer } from './bench-server.ts';
import { publishApproval, publishPrompt, publishStart, runEnded } from './bench-session.ts';
import { type Figure, median, percentile, type Skipped, shown } from './figures.ts';
import type { HostMemory } from './host-main.ts';
import { HostProcess } from './host-process.ts';

const SESSIONS = 100_000;
/** Of these, half are there before: V8 compiles code during the first thousands, which is no memory of sessions. */
const WAITING_SESSIONS = 20_000;
const LIVE_SESSIONS = 5_000;
/** Runs that are under way at once while the store is filled. */
const AT_ONCE = 400;
/** As many are filled before those of them that are idle have left memory. */
const FILLED_AT_ONCE = 2_000;
const WAKES = 300;
/** The turns of sessions that have a long past. */
const LONG_TURNS = 250;
/** Until marks of notes have gone (60 s), and the server has let go of what it keeps for a while. */
const SETTLED_MS = 75_000;
/** Until the collector of a server that was started has run once without being asked, which it does every two minutes. */
const RESTARTED_MS = 150_000;
const KIB = 1_024;
const COLLECTED = ['--expose-gc'];
const AWAY_AT_ONCE = { passivateAfterMs: 300, sweepEveryMs: 200 };

/** The part `idle-sessions`. */
export const idleSessions: Part = {
  name: 'idle-sessions',
  async measure({ quick }) {
    const sessions = quick ? SESSIONS / 50 : SESSIONS;
    const settledMs = quick ? 2_000 : SETTLED_MS;
    const restartedMs = quick ? 2_000 : RESTARTED_MS;
    const stateDir = await mkdtemp(join(tmpdir(), 'cox-bench-idle-'));
    try {
      const passive = await measurePassive(stateDir, sessions, settledMs, restartedMs);
      const waiting = await measureWaiting(quick ? WAITING_SESSIONS / 50 : WAITING_SESSIONS);
      const live = await measureLive(quick ? LIVE_SESSIONS / 10 : LIVE_SESSIONS);
      return {
        figures: [...passive.figures, ...waiting.figures, ...live.figures],
        detail: { sessions, passive: passive.detail, waiting, live },
      };
    } finally {
      await rm(stateDir, { recursive: true, force: true });
    }
  },
};

/** A server that is up, with a host and a client. */
interface Place {
  readonly server: BenchServer;
  readonly host: HostProcess;
  readonly nc: NatsConnection;
  readonly hostUpMs: number;
}

async function at<T>(
  { stateDir, ...settings }: { stateDir?: string; syncAlways: boolean; passivate: object },
  work: (place: Place) => Promise<T>,
): Promise<T> {
  const { passivate, syncAlways } = settings;
  const server = await startBenchServer(stateDir === undefined ? { syncAlways } : { stateDir, syncAlways });
  try {
    const beganMs = performance.now();
    const host = await HostProcess.open(server, { options: passivate }, COLLECTED);
    const hostUpMs = performance.now() - beganMs;
    try {
      const nc = await connectNats({ servers: server.url, token: server.token, name: 'bench-driver' });
      try {
        return await work({ server, host, nc, hostUpMs });
      } finally {
        await nc.close();
      }
    } finally {
      await host.stop();
    }
  } finally {
    await server.stop();
  }
}

async function measurePassive(stateDir: string, sessions: number, settledMs: number, restartedMs: number) {
  const few = Math.ceil(sessions / 100);
  const filling = { stateDir, syncAlways: false, passivate: AWAY_AT_ONCE };
  const before = await at(filling, async (place) => {
    await fillPassive(place, 0, few);
    return measured(place, settledMs);
  });
  const beforeRestarted = await at(filling, (place) => residentOf(place, restartedMs));
  const after = await at(filling, async (place) => {
    // The first ones bring what a host holds for good.
    await fillPassive(place, few, few);
    const host = await passivated(place);
    await fillPassive(place, 2 * few, sessions - 2 * few);
    return { ...(await measured(place, settledMs)), hostBefore: host, left: await leftOn(place.nc) };
  });
  const woken = await at({ ...filling, syncAlways: true }, (place) => measureWoken(place, sessions, restartedMs));

  const more = sessions - few;
  const hostBytes = held(after.host) - held(after.hostBefore);
  const serverBytes = after.serverBytes - before.serverBytes;
  const restartedBytes = woken.serverBytes - beforeRestarted;
  const inMiB = (bytes: number) => `${shown(bytes / KIB / KIB)} MiB`;
  const figures: (Figure | Skipped)[] = [
    {
      what: 'a passivated session: resident in the host',
      value: hostBytes / (sessions - 2 * few),
      unit: 'B',
      bar: { atMost: 100 },
      from: `${sessions - 2 * few} more; heap ${inMiB(held(after.hostBefore))} before, ${inMiB(held(after.host))} after`,
    },
    {
      what: 'a passivated session: resident in the server that has run it',
      value: serverBytes / more / KIB,
      unit: 'KiB',
      from: `with what its collector has not given back ${settledMs / 1_000} s later; ${inMiB(before.serverBytes)} with ${few}, ${inMiB(after.serverBytes)} with all`,
    },
    {
      what: 'a passivated session: resident in a restarted server',
      value: restartedBytes / more / KIB,
      unit: 'KiB',
      bar: { atMost: 1.5 },
      from: `${inMiB(beforeRestarted)} with ${few}, ${inMiB(woken.serverBytes)} with all`,
    },
    {
      what: 'a passivated session: on the server’s disk',
      value: after.left.diskBytes / sessions / KIB,
      unit: 'KiB',
      from: `${shown(after.left.records / sessions)} records each, and a snapshot`,
    },
    {
      what: 'passivated sessions: notes, commands and timers left',
      value: after.left.notes + after.left.commands + after.left.timers,
      unit: '',
      bar: { exactly: 0 },
      from: `${settledMs / 1_000} s later`,
    },
    ...woken.figures,
  ];
  return { figures, detail: { before, beforeRestarted, after, woken } };
}

async function measureWoken({ host, nc, server, hostUpMs }: Place, sessions: number, restartedMs: number) {
  const serverBytes = await residentBytes(server, restartedMs);
  const long = sessionRef('idle-long');
  await runOne(host, nc, long, 'instant/echo', LONG_TURNS);
  await untilAway(host);
  const raw: number[] = [];
  const woken: number[] = [];
  const durable: number[] = [];
  await host.call('takeWakeTimes', null);
  for (let i = 0; i < WAKES; i++) {
    const ref = refOf(Math.floor((i * sessions) / WAKES));
    raw.push(await host.call('rawLoad', { sessionId: ref.sessionId }));
    const beganMs = performance.now();
    await promptAndEnd(host, nc, ref);
    durable.push(performance.now() - beganMs);
    woken.push(...(await host.call('takeWakeTimes', null)));
  }
  // The first ones are compiled on the way.
  const warm = (samples: readonly number[]) => samples.slice(Math.floor(WAKES / 3));
  const rawLong = await host.call('rawLoad', { sessionId: long.sessionId });
  await promptAndEnd(host, nc, long, 60_000);
  const [wokenLong = 0] = await host.call('takeWakeTimes', null);
  const list = await printed(server, ['session', 'list']);
  const p50 = `p50 ${shown(median(warm(woken)))} p99 ${shown(percentile(warm(woken), 0.99))} ms`;
  const figures: Figure[] = [
    {
      what: 'a passivated session: woken, p50 ÷ raw snapshot and tail',
      value: median(warm(woken)) / median(warm(raw)),
      unit: '×',
      bar: { atMost: 3 },
      from: `${p50}; raw p50 ${shown(median(warm(raw)))} ms; a command to the end of its run ${shown(median(warm(durable)))} ms`,
    },
    {
      what: `a passivated session of ${LONG_TURNS} turns: woken`,
      value: wokenLong,
      unit: 'ms',
      from: `raw ${shown(rawLong)} ms; the rest is its transcript, which models are shown`,
    },
    {
      what: 'a host is up beside them',
      value: hostUpMs / 1_000,
      unit: 's',
      from: `from its fork, with ${sessions} passivated sessions`,
    },
    {
      what: '`cox session list` lists them',
      value: list.ms / 1_000,
      unit: 's',
      from: `${list.lines} lines`,
    },
  ];
  return { figures, serverBytes, hostUpMs, raw, woken, durable, wokenLong, rawLong, list };
}

async function measureWaiting(sessions: number) {
  return at({ syncAlways: true, passivate: AWAY_AT_ONCE }, async (place) => {
    const few = Math.ceil(sessions / 2);
    await fill(place, 0, few, WAITING);
    const before = await passivated(place);
    await fill(place, few, sessions - few, WAITING);
    const after = await passivated(place);
    const list = await printed(place.server, ['approval', 'list']);
    const started: number[] = [];
    for (let i = 0; i < Math.min(WAKES, sessions); i++) started.push(await approve(place.nc, refOf(i)));
    const figures: Figure[] = [
      {
        what: 'a session that waits for an approval: resident in the host',
        value: (held(after) - held(before)) / (sessions - few),
        unit: 'B',
        bar: { atMost: 100 },
        from: `${sessions - few} more, passivated`,
      },
      {
        what: '`cox approval list` lists their approvals',
        value: list.ms / 1_000,
        unit: 's',
        from: `${list.lines} lines, of ${sessions} sessions`,
      },
      {
        what: 'an approval of a passivated session: to the start of its call, p50',
        value: median(started),
        unit: 'ms',
        from: `p99 ${shown(percentile(started, 0.99))} ms`,
      },
    ];
    return { figures, before, after, list, started };
  });
}

async function measureLive(sessions: number) {
  return at({ syncAlways: false, passivate: { passivateAfterMs: 3_600_000, sweepEveryMs: 500 } }, async (place) => {
    const few = Math.ceil(sessions / 2);
    await fill(place, 0, few);
    const before = await place.host.call('memory', null);
    await fill(place, few, sessions);
    // They have been looked at since, as idle ones are every 5 s.
    await sleep(2_000);
    const after = await place.host.call('memory', null);
    const figures: Figure[] = [
      {
        what: 'a session that is live and idle: resident in the host',
        value: (held(after) - held(before)) / (after.live - before.live) / KIB,
        unit: 'KiB',
        bar: { atMost: 12 },
        from: `${after.live - before.live} more, of one run each`,
      },
    ];
    return { figures, before, after };
  });
}

function refOf(i: number): SessionRef {
  return sessionRef(`idle-${i}`);
}

/** Runs so many sessions, each once, and lets them leave memory on the way. */
async function fillPassive(place: Place, from: number, count: number): Promise<void> {
  for (let done = 0; done < count; done += FILLED_AT_ONCE) {
    await fill(place, from + done, Math.min(FILLED_AT_ONCE, count - done));
    await untilAway(place.host, FILLED_AT_ONCE / 4);
  }
}

/** How sessions are filled, and the text in the last event of it. */
interface Filling {
  readonly model: string;
  readonly calls: 'allow' | 'ask';
  readonly last: string;
}

/** Each session runs once, without a call. */
const ENDED: Filling = { model: 'instant/say', calls: 'allow', last: '"type":"agent_end"' };
/** Each session waits for an approval of its first call. */
const WAITING: Filling = { model: 'instant/echo', calls: 'ask', last: '"type":"approval_requested"' };

/** Starts so many sessions, and resolves when each has the last event of its filling. */
async function fill(
  { nc }: Pick<Place, 'nc'>,
  from: number,
  count: number,
  { model, calls, last }: Filling = ENDED,
): Promise<void> {
  const left = Array.from({ length: count }, (_, i) => i + from).values();
  const ended = new Map<string, () => void>();
  // As everyone hears of it: a host does not say so itself of an append that it had to send twice.
  const events = nc.subscribe(tenantSubjects.events(DEFAULT_TENANT), {
    callback: (error, { subject, data }) => {
      if (error || !contains(data, last)) return;
      ended.get(subject.slice(subject.lastIndexOf('.') + 1))?.();
    },
  });
  await nc.flush();
  const worker = async () => {
    for (const i of left) {
      const ref = refOf(i);
      const end = new Promise<void>((resolve) => ended.set(ref.sessionId, resolve));
      publishStart(nc, ref, model, 5, calls);
      await end;
      ended.delete(ref.sessionId);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  events.unsubscribe();
}

async function runOne(host: HostProcess, nc: NatsConnection, ref: SessionRef, model: string, turns: number) {
  const end = runEnded(host, ref);
  publishStart(nc, ref, model, turns);
  await end;
}

async function promptAndEnd(host: HostProcess, nc: NatsConnection, ref: SessionRef, boundMs?: number): Promise<void> {
  const end = runEnded(host, ref, boundMs);
  publishPrompt(nc, ref);
  await end;
}

function contains(data: Uint8Array, text: string): boolean {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).includes(text);
}

/** Approves the pending call of a session. @returns the milliseconds to the start of the call. */
async function approve(nc: NatsConnection, ref: SessionRef): Promise<number> {
  const started = new Promise<void>((resolve) => {
    const events = nc.subscribe(subjects.events(ref), {
      callback: (error, { data }) => {
        if (error || !contains(data, '"type":"call_started"')) return;
        events.unsubscribe();
        resolve();
      },
    });
  });
  await nc.flush();
  const beganMs = performance.now();
  publishApproval(nc, ref);
  await started;
  return performance.now() - beganMs;
}

/** Resolves when few enough sessions are in the host's memory. */
async function untilAway(host: HostProcess, live = 0): Promise<void> {
  while ((await host.call('live', null)) > live) await sleep(100);
}

async function passivated({ host }: Place): Promise<HostMemory> {
  await untilAway(host);
  return host.call('memory', null);
}

async function measured(place: Place, settledMs: number) {
  await passivated(place);
  const serverBytes = await residentBytes(place.server, settledMs);
  return { host: await passivated(place), serverBytes };
}

function residentOf({ server }: Place, settledMs: number): Promise<number> {
  return residentBytes(server, settledMs);
}

async function residentBytes({ pid }: BenchServer, settledMs: number): Promise<number> {
  await sleep(settledMs);
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * KIB;
}

function held({ heapBytes, externalBytes }: HostMemory): number {
  return heapBytes + externalBytes;
}

/** What the streams hold. */
async function leftOn(nc: NatsConnection) {
  const state = async (stream: string) => {
    const answer = await nc.request(`$JS.API.STREAM.INFO.${stream}`, '', { timeout: 10_000 });
    return (JSON.parse(answer.string()) as { state: { messages: number; bytes: number } }).state;
  };
  const journals = await Promise.all(JOURNAL_STREAMS.map(state));
  const snapshots = await state(STREAMS.snapshots);
  const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
  return {
    records: sum(journals.map(({ messages }) => messages)),
    diskBytes: sum(journals.map(({ bytes }) => bytes)) + snapshots.bytes,
    notes: (await state(`KV_${STREAMS.active}`)).messages,
    commands: (await state(STREAMS.commands)).messages,
    timers: (await state(STREAMS.timers)).messages,
  };
}

/** Runs a command of the command line. */
async function printed({ url, token }: BenchServer, line: readonly string[]): Promise<{ ms: number; lines: number }> {
  const beganMs = performance.now();
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(import.meta.dirname, '../../libs/cli/bin/cox.mjs'), ...line],
    { env: { ...process.env, NATS_URL: url.replace('://', `://${token}@`) }, maxBuffer: 256 * KIB * KIB },
  );
  return { ms: performance.now() - beganMs, lines: stdout.split('\n').length - 1 };
}
