/**
 * Recovery: a host with many running sessions is killed (-9), and it is measured when they go on: with a host that is
 * started at once in its place, and with another one that lives. All of them are in the middle of a call of a second or
 * three, every other of which may not run again. Then every journal is held against what was sent, seen and done.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectNats } from '@coxswain/adapter-nats';
import { partitionOf, subjects } from '@coxswain/protocol';
import { assignPartitions } from '@coxswain/session';
import type { NatsConnection } from '@nats-io/nats-core';
import type { Part } from './bench-part.ts';
import { type BenchServer, startBenchServer } from './bench-server.ts';
import { type Figure, median, percentile, shown } from './figures.ts';
import { HostProcess } from './host-process.ts';
import { monotonicMs } from './monotonic.ts';
import { RunningSessions } from './running-sessions.ts';
import { checkJournals, type Soundness } from './sound-journals.ts';

const SESSIONS = 1_000;
/** Steps that each session has behind it when its host dies. */
const STEPS_BEFORE = 12;

interface Recovery {
  /** From the moment at which time begins to the first step of each session, milliseconds, ascending. */
  readonly steppedMs: readonly number[];
  /** From the kill to the moment at which time begins. */
  readonly untilBegunMs: number;
  readonly sound: Soundness;
}

/** The part `recovery`. */
export const recovery: Part = {
  name: 'recovery',
  async measure({ quick }) {
    const steps = quick ? 4 : STEPS_BEFORE;
    const restarted = await withSessions(steps, restart);
    const elsewhere = await withSessions(steps, takeOver);
    return {
      figures: [...figuresOf('after a restart', restarted, 3), ...figuresOf('on another host', elsewhere, 4)],
      detail: { sessions: SESSIONS, steps, restarted, elsewhere },
    };
  },
};

function figuresOf(where: string, { steppedMs, untilBegunMs, sound }: Recovery, firstBar: number): Figure[] {
  const inS = (ms: number) => `${shown(ms / 1_000)} s`;
  const of = `${SESSIONS} sessions`;
  return [
    {
      what: `recovery ${where}: the first step again`,
      value: (steppedMs[0] as number) / 1_000,
      unit: 's',
      bar: { atMost: firstBar },
      from: untilBegunMs === 0 ? 'since the kill' : `since the start of a host, ${inS(untilBegunMs)} after the kill`,
    },
    {
      what: `recovery ${where}: every session has made a step`,
      value: (steppedMs.at(-1) as number) / 1_000,
      unit: 's',
      bar: { atMost: 10 },
      from: `${of}; p50 ${inS(median(steppedMs))}, p99 ${inS(percentile(steppedMs, 0.99))}`,
    },
    {
      what: `recovery ${where}: doubled or lost`,
      value: sound.faults.length,
      unit: '',
      bar: { exactly: 0 },
      from: sound.faults[0] ?? `${sound.records} records replayed; ${sound.interrupted} calls in doubt, each reported`,
    },
  ];
}

/** A place with a server, a client, and a file where calls leave their keys. */
interface Place {
  readonly server: BenchServer;
  readonly nc: NatsConnection;
  readonly beganFile: string;
  readonly steps: number;
  readonly hosts: HostProcess[];
}

async function withSessions(steps: number, work: (place: Place) => Promise<Recovery>): Promise<Recovery> {
  const folder = await mkdtemp(join(tmpdir(), 'cox-bench-recovery-'));
  const server = await startBenchServer();
  const hosts: HostProcess[] = [];
  try {
    const nc = await connectNats({ servers: server.url, token: server.token, name: 'bench-driver' });
    try {
      return await work({ server, nc, beganFile: join(folder, 'began'), steps, hosts });
    } finally {
      await nc.close();
    }
  } finally {
    for (const host of hosts) await host.stop();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** A host of the same name is started at once, as whatever looks after the process would. */
async function restart(place: Place): Promise<Recovery> {
  const host = await hostIn(place, 'first');
  const ids = Array.from({ length: SESSIONS }, (_, i) => `recovery-${process.pid}-${i}`);
  return killed(place, host, ids, async () => {
    const begunMs = monotonicMs();
    await hostIn(place, 'again');
    return begunMs;
  });
}

/** Two hosts live; all sessions are of partitions of one of them. */
async function takeOver(place: Place): Promise<Recovery> {
  await hostIn(place, 'again');
  const host = await hostIn(place, 'first');
  const names = await hostNames(place.nc);
  const name = names.find((one) => one.startsWith('first')) ?? '';
  const own = new Set(assignPartitions(names).get(name));
  const ids = Array.from({ length: 4 * SESSIONS }, (_, i) => `recovery-${process.pid}-${i}`)
    .filter((id) => own.has(partitionOf(id)))
    .slice(0, SESSIONS);
  return killed(place, host, ids, async () => null);
}

async function killed(
  { nc, beganFile, steps }: Place,
  host: HostProcess,
  ids: readonly string[],
  begin: () => Promise<number | null>,
): Promise<Recovery> {
  const sessions = new RunningSessions(nc, ids);
  await sessions.start('instant/pause', steps);
  sessions.steerAll('before');
  await nc.flush();
  const heard = sessions.newest();
  sessions.awaitStepsOf('again');
  const killedMs = monotonicMs();
  await host.kill();
  sessions.steerAll('after');
  const beginsMs = (await begin()) ?? killedMs;
  const stepped = await sessions.stepped();
  await sessions.cancel();
  const sound = await checkJournals(nc, sessions.refs, { steered: ['before', 'after'], heard, beganFile });
  return {
    steppedMs: stepped.map((atMs) => Math.round(atMs - beginsMs)),
    untilBegunMs: Math.round(beginsMs - killedMs),
    sound,
  };
}

async function hostIn({ server, hosts, beganFile }: Place, name: string): Promise<HostProcess> {
  const host = await HostProcess.open(server, { options: { name }, beganFile });
  hosts.push(host);
  return host;
}

/** The names under which hosts beat: two of them, heard on the bus. */
async function hostNames(nc: NatsConnection): Promise<string[]> {
  const names = new Set<string>();
  for await (const { subject } of nc.subscribe(subjects.hostBeats)) {
    names.add(subject.slice(subject.lastIndexOf('.') + 1));
    if (names.size === 2) break;
  }
  return [...names];
}
