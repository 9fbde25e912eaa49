/**
 * Durable steps per second at 1, 50 and 500 sessions, every write on the disk, one host process and the server.
 *
 * First the peers' own protocol, in rotation with the peers of `COX_BENCH_PEERS`: a host that has just started, five
 * sessions of twenty turns, then each level once. Then each level again on the same host, between raw fenced appends of
 * one client: the share of the bus's own throughput that a host reaches once it is warm.
 */
import type { Bench, Part } from './bench-part.ts';
import { freshRef, publishStart, runEnded } from './bench-session.ts';
import { type Figure, median, percentile, range, type Skipped, shown } from './figures.ts';
import { findPeers } from './peers.ts';
import { untilQuiet } from './quiet-machine.ts';
import { rawAppendsPerSecond } from './raw-path.ts';
import { runInRotation } from './steps-rotation.ts';
import { LEVELS, type Level, OF_RAW, type OurLevel, type OurRun, type StepsRuns } from './steps-runs.ts';
import { withBench } from './with-bench.ts';

/** Our goal at 500 sessions, microseconds of CPU time of the host. */
const HOST_CPU_US_PER_STEP = 170;
/** A model step and a tool step. */
const STEPS_PER_TURN = 2;
const RECORD_BYTES = 1_000;
/** A quick run has this fraction of the turns. */
const QUICK_DIVISOR = 5;

/** The part `steps`. */
export const durableSteps: Part = {
  name: 'steps',
  async measure({ quick, rounds }) {
    const levels = LEVELS.map(
      (level) => ({ ...level, turns: quick ? level.turns / QUICK_DIVISOR : level.turns }) as Level,
    );
    const found = await findPeers();
    const sizes = levels.map(({ sessions, turns }) => [sessions, turns] as const);
    const sides = { ourRun: () => ourRun(levels), peers: found.peers };
    const detail = await runInRotation(rounds, sides, sizes, untilQuiet).finally(() => found.remove());
    const failed = detail.peers.flatMap(({ name, runs, failed }) =>
      failed === undefined ? [] : [{ what: name, skipped: `failed after ${runs.length} runs: ${failed}` }],
    );
    const skipped: Skipped[] = found.missing ? [{ what: 'peers skipped', skipped: found.missing }] : failed;
    return {
      figures: [...levels.flatMap((level) => figuresOf(level, detail)), ...skipped, ...steeringOf(detail.peers)],
      detail,
      complete: failed.length === 0,
    };
  },
};

function figuresOf({ sessions, turns, ofRestate }: Level, { ours, peers }: StepsRuns): Figure[] {
  const started = ours.map((run) => run.started[sessions] as OurLevel);
  const warm = ours.flatMap((run) => run.warm[sessions] ?? []);
  const name = `durable steps/s at ${sessions} session${sessions === 1 ? '' : 's'}`;
  const value = median(started.map((level) => level.steps_s));
  const middle = (pick: (level: OurLevel) => number) => shown(median(started.map(pick)));
  const figures: Figure[] = [
    {
      what: name,
      value,
      unit: '/s',
      from: `${range(started.map((level) => level.steps_s))}; ${turns} turns each, host just started; a turn p50 ${middle((l) => l.turn_p50_ms)} p99 ${middle((l) => l.turn_p99_ms)} ms`,
    },
  ];
  for (const peer of peers) {
    const theirs = peer.runs.flatMap((run) => run[`c${sessions}`] ?? []);
    if (theirs.length === 0) continue;
    const of = median(theirs.map((level) => level.steps_s));
    figures.push({
      what: `${name} ÷ ${peer.name}`,
      value: value / of,
      unit: '×',
      ...(peer.name === 'Restate' ? { bar: { atLeast: ofRestate } } : {}),
      from: `${peer.name} ${shown(of)}/s, ${range(theirs.map((level) => level.steps_s))}; a turn p50 ${shown(median(theirs.map((level) => level.turn_p50_ms)))} ms`,
    });
  }
  figures.push({
    what: `${name}, warm, ÷ raw appends of one client`,
    value: median(warm.map((level) => level.steps_s / level.raw_appends_s)),
    unit: '×',
    bar: { atLeast: OF_RAW },
    from: `${shown(median(warm.map((level) => level.steps_s)))}/s of ${shown(median(warm.map((level) => level.raw_appends_s)))}/s raw, ${sessions} at a time`,
  });
  figures.push({
    what: `host CPU per step at ${sessions} session${sessions === 1 ? '' : 's'}, warm`,
    value: median(warm.map((level) => level.host_cpu_us_per_step)),
    unit: 'µs',
    ...(sessions === 500 ? { bar: { atMost: HOST_CPU_US_PER_STEP } } : {}),
    from: range(warm.map((level) => level.host_cpu_us_per_step)),
  });
  return figures;
}

function steeringOf(peers: StepsRuns['peers']): Figure[] {
  return peers.flatMap(({ name, runs }) => {
    const p50 = runs.flatMap((run) => run.steer_running?.p50_ms ?? []);
    if (p50.length === 0) return [];
    return [{ what: `${name}: steering a running session, p50`, value: median(p50), unit: 'ms', from: range(p50) }];
  });
}

function ourRun(levels: readonly Level[]): Promise<OurRun> {
  return withBench(async (bench) => {
    const run: OurRun = { server: bench.server.version, started: {}, warm: {} };
    for (let i = 0; i < 5; i++) await runLevel(bench, 1, 20);
    for (const { sessions, turns } of levels) run.started[sessions] = await runLevel(bench, sessions, turns);
    for (const { sessions, turns } of levels) {
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
