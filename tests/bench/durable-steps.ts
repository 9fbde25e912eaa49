/**
 * Durable steps per second at 1, 50 and 500 sessions, every write on the disk, one host process and the server.
 *
 * First the peer's own protocol, in turn with Restate where its folder is there: a host that has just been started, five
 * sessions of twenty turns, then each level once. Then each level again on the same host, in turn with raw fenced
 * appends of one client: what a host that has been up for a while makes of the bus.
 */
import type { Bench, Part } from './bench-part.ts';
import { freshRef, publishStart, runEnded } from './bench-session.ts';
import { type Figure, median, percentile, type Skipped, shown } from './figures.ts';
import { rawAppendsPerSecond } from './raw-path.ts';
import { findPeer, type Peer, type PeerRun } from './restate-peer.ts';
import { withBench } from './with-bench.ts';

const LEVELS = [
  { sessions: 1, turns: 300, ofPeer: 2 },
  { sessions: 50, turns: 40, ofPeer: 2 },
  { sessions: 500, turns: 10, ofPeer: 1.5 },
] as const;
type Level = (typeof LEVELS)[number];

/** A model step and a tool step. */
const STEPS_PER_TURN = 2;
const RECORD_BYTES = 1_000;

interface OurLevel {
  readonly steps_s: number;
  readonly turn_p50_ms: number;
  readonly turn_p99_ms: number;
  readonly host_cpu_us_per_step: number;
}
interface OurRun {
  readonly started: Record<number, OurLevel>;
  readonly warm: Record<number, OurLevel & { readonly raw_appends_s: number }>;
}

/** The part `steps`. */
export const durableSteps: Part = {
  name: 'steps',
  async measure({ quick }) {
    const peer = await findPeer();
    const ours: OurRun[] = [];
    const peers: PeerRun[] = [];
    try {
      for (let round = 0; round < (quick ? 1 : 4); round++) {
        // Turn about, so that neither always has the machine as the other left it.
        const turn = [
          () => ourRun().then((run) => ours.push(run)),
          () => peerRun(peer).then((run) => peers.push(...run)),
        ];
        for (const next of round % 2 === 0 ? turn : turn.reverse()) await next();
      }
    } finally {
      if (typeof peer !== 'string') await peer.remove();
    }
    const skipped: Skipped[] = typeof peer === 'string' ? [{ what: 'peer skipped', skipped: peer }] : [];
    return {
      figures: [...LEVELS.flatMap((level) => figuresOf(level, ours, peers)), ...skipped, ...steeringOfPeer(peers)],
      detail: { ours, peers },
    };
  },
};

function figuresOf({ sessions, turns, ofPeer }: Level, ours: readonly OurRun[], peers: readonly PeerRun[]): Figure[] {
  const started = ours.map((run) => run.started[sessions] as OurLevel);
  const warm = ours.flatMap((run) => run.warm[sessions] ?? []);
  const middle = <L>(levels: readonly L[], pick: (level: L) => number) => median(levels.map(pick));
  const name = `durable steps/s at ${sessions} session${sessions === 1 ? '' : 's'}`;
  const figures: Figure[] = [
    {
      what: name,
      value: middle(started, (level) => level.steps_s),
      unit: '/s',
      from: `${turns} turns each, host just started; a turn p50 ${shown(middle(started, (l) => l.turn_p50_ms))} p99 ${shown(middle(started, (l) => l.turn_p99_ms))} ms`,
    },
  ];
  const theirs = peers.flatMap((run) => run[`c${sessions}`] ?? []);
  if (theirs.length > 0) {
    figures.push({
      what: `${name} ÷ Restate`,
      value: middle(started, (level) => level.steps_s) / middle(theirs, (level) => level.steps_s),
      unit: '×',
      bar: { atLeast: ofPeer },
      from: `Restate ${shown(middle(theirs, (l) => l.steps_s))}/s, a turn p50 ${shown(middle(theirs, (l) => l.turn_p50_ms))} ms; medians of ${theirs.length}`,
    });
  }
  figures.push({
    what: `${name}, warm, ÷ raw appends of one client`,
    value: middle(warm, (level) => level.steps_s / level.raw_appends_s),
    unit: '×',
    bar: { atLeast: 0.5 },
    from: `${shown(middle(warm, (l) => l.steps_s))}/s beside ${shown(middle(warm, (l) => l.raw_appends_s))}/s raw, ${sessions} at a time`,
  });
  return figures;
}

function steeringOfPeer(peers: readonly PeerRun[]): Figure[] {
  const p50 = peers.flatMap((run) => run.steer_running?.p50_ms ?? []);
  if (p50.length === 0) return [];
  return [
    {
      what: 'Restate: steering a running session, p50',
      value: median(p50),
      unit: 'ms',
      from: 'to be beaten threefold',
    },
  ];
}

async function peerRun(peer: Peer | string): Promise<PeerRun[]> {
  if (typeof peer === 'string') return [];
  return [await peer.run(LEVELS.map(({ sessions, turns }) => [sessions, turns] as const))];
}

function ourRun(): Promise<OurRun> {
  return withBench(async (bench) => {
    const run: OurRun = { started: {}, warm: {} };
    for (let i = 0; i < 5; i++) await runLevel(bench, 1, 20);
    for (const { sessions, turns } of LEVELS) run.started[sessions] = await runLevel(bench, sessions, turns);
    for (const { sessions, turns } of LEVELS) {
      const raw = [await rawLevel(bench, sessions, turns)];
      const level = await runLevel(bench, sessions, turns);
      raw.push(await rawLevel(bench, sessions, turns));
      run.warm[sessions] = {
        ...level,
        raw_appends_s: Math.round(raw.reduce((sum, each) => sum + each, 0) / raw.length),
      };
    }
    return run;
  });
}

async function runLevel({ host, nc }: Bench, sessions: number, turns: number): Promise<OurLevel> {
  const steps = STEPS_PER_TURN * sessions * turns;
  await host.call('takeTurnTimes', null);
  const cpuBefore = await host.call('cpuMs', null);
  const refs = Array.from({ length: sessions }, () => freshRef());
  const beganMs = performance.now();
  const ended = Promise.all(refs.map((ref) => runEnded(host, ref, 300_000)));
  for (const ref of refs) publishStart(nc, ref, 'instant/echo', turns);
  await ended;
  const wallMs = performance.now() - beganMs;
  const cpuMs = (await host.call('cpuMs', null)) - cpuBefore;
  const times = Object.values(await host.call('takeTurnTimes', null)).flat();
  return {
    steps_s: Math.round((steps * 1_000) / wallMs),
    turn_p50_ms: median(times),
    turn_p99_ms: percentile(times, 0.99),
    host_cpu_us_per_step: Math.round((cpuMs * 1_000) / steps),
  };
}

/** As many appends as the level has steps. */
function rawLevel({ nc }: Bench, sessions: number, turns: number): Promise<number> {
  return rawAppendsPerSecond(nc, sessions, STEPS_PER_TURN * turns, Buffer.alloc(RECORD_BYTES, 'z'));
}
