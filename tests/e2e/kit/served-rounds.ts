/** Rounds of the failure matrix on real processes: many pieces of every kind of work, and one instance that fails. */
import { setTimeout as sleep } from 'node:timers/promises';
import { SERVED_LIVENESS } from '@coxswain/protocol';
import type { Ending } from '../../contracts/served-endings.ts';
import { stopProcess } from '../../contracts/stop-process.ts';
import type { Random } from '../../simulation/random.ts';
import type { FleetKind, ServedFleet, Work, WorkStart } from './served-fleet.ts';

/** Ways in which an instance fails: SIGKILL, or SIGSTOP and later SIGCONT. */
export const FAILURES = ['killed', 'frozen'] as const;
/** When it fails. The acceptance of work is its start. */
export const MOMENTS = ['before the ask', 'between ask and acceptance', 'after the acceptance'] as const;
export type Moment = (typeof MOMENTS)[number];

/** How a round goes. */
export interface RoundPlan {
  readonly failure: (typeof FAILURES)[number];
  readonly moment: Moment;
  /** Pieces of work of each kind. */
  readonly asks: number;
  /** For how long an instance may be frozen, milliseconds; one of them is chosen. */
  readonly frozenMs: readonly number[];
}

/** One piece of work of a round. Times in milliseconds since 1970. */
interface Observed {
  readonly kind: FleetKind;
  readonly work: Work;
  readonly sentMs: number;
  readonly endedMs: number;
  readonly ending: Ending;
  readonly failed: FailedInstance;
}

interface FailedInstance {
  readonly pid: number;
  readonly failure: RoundPlan['failure'];
  readonly atMs: number;
  resumedMs: number;
}

/** The verdict on one piece of work. */
export interface Judged {
  readonly kind: FleetKind;
  readonly failure: RoundPlan['failure'];
  /** Null for work that another instance ran, or that had ended before the failure. */
  readonly moment: Moment | null;
  readonly ending: Ending;
  readonly starts: number;
  /** How much longer its session waited than the work took: on the failed instance before the failure, and again. */
  readonly waitedMs: number;
  /** An instance that had resumed started it, although it was decided elsewhere. */
  readonly isLate: boolean;
  readonly broken: readonly string[];
}

/** The limit for a session that waits for the end of its work, milliseconds. */
export const WAIT_MAX_MS = 6_000;
/** From now on an instance that has resumed has handled what it found, milliseconds. */
const HANDLED_MS = 1_500;
/** The abort of the other copies of a step follows its end, milliseconds. */
const ABORTED_MS = 500;

let works = 0;

/** Runs a round, and judges it by the log of the fleet. The fleet is complete again after it. */
export async function runRound(
  fleet: ServedFleet,
  kinds: readonly FleetKind[],
  { failure, moment, asks, frozenMs }: RoundPlan,
  random: Random,
): Promise<readonly Judged[]> {
  // The host has received heartbeats of all instances.
  await sleep(3 * SERVED_LIVENESS.heartbeatMs);
  const victim = random.pick(fleet.instances);
  let failed: FailedInstance | undefined;
  let resumed: Promise<unknown> = Promise.resolve();
  const fail = async () => {
    failed = { pid: victim.pid, failure, atMs: Date.now(), resumedMs: Number.POSITIVE_INFINITY };
    if (failure === 'killed') return fleet.kill(victim);
    const frozen = failed;
    await stopProcess(victim.pid);
    resumed = sleep(random.pick(frozenMs)).then(() => {
      frozen.resumedMs = Date.now();
      victim.process.kill('SIGCONT');
    });
  };
  const ask = async (kind: FleetKind, afterMs: number) => {
    await sleep(afterMs);
    const work = { key: `w${++works}`, takesMs: Math.round(random.between(50, 1_500)) };
    const sentMs = Date.now();
    const ending = await kind.ask(work);
    return { kind, work, sentMs, endedMs: Date.now(), ending };
  };
  const askAll = (withinMs: number) =>
    kinds.flatMap((kind) => Array.from({ length: asks }, () => ask(kind, random.between(0, withinMs))));

  const asked: ReturnType<typeof ask>[] = [];
  if (moment === 'before the ask') {
    await fail();
    asked.push(...askAll(2_000));
  } else {
    asked.push(...askAll(moment === 'between ask and acceptance' ? 10 : 0));
    await sleep(moment === 'between ask and acceptance' ? random.between(0, 12) : random.between(50, 600));
    await fail();
  }
  const ended = await Promise.all(asked);
  await resumed;
  if (failure === 'killed') await fleet.add();
  else await sleep(HANDLED_MS);
  const starts = await fleet.starts();
  return ended.map((one) =>
    judge(
      { ...one, failed: failed as FailedInstance },
      starts.filter(({ key }) => key === one.work.key),
    ),
  );
}

function judge(observed: Observed, starts: readonly WorkStart[]): Judged {
  const { kind, work, sentMs, endedMs, ending, failed } = observed;
  const onFailed = starts.find(({ pid, atMs }) => pid === failed.pid && atMs <= failed.atMs);
  const isStarted = starts.some(({ atMs }) => atMs <= failed.atMs);
  const moment = ((): Moment | null => {
    if (sentMs > failed.atMs) return 'before the ask';
    if (!isStarted) return 'between ask and acceptance';
    return onFailed && endedMs > failed.atMs ? 'after the acceptance' : null;
  })();
  const isAnswered = ending.status === 'answered';
  const isOfFailed = isAnswered && ending.text === `by ${failed.pid}`;
  const lostMs = onFailed && !isOfFailed ? Math.max(0, failed.atMs - onFailed.atMs) : 0;
  const waitedMs = endedMs - sentMs - lostMs - (isAnswered ? work.takesMs : 0);
  const mayBeLost = !kind.isRepeatable && moment !== null && moment !== 'before the ask';
  const startsLate = ({ pid, atMs, acceptedMs }: WorkStart, place: number) =>
    pid === failed.pid &&
    Math.min(atMs, acceptedMs) >= failed.resumedMs &&
    (kind.isHeld ? atMs > endedMs || place > 0 : kind.isStreamed && atMs > endedMs + ABORTED_MS);
  const isLate = starts.some(startsLate);
  const isExpected = isAnswered || (mayBeLost && ending.status === 'lost');
  return {
    kind,
    failure: failed.failure,
    moment,
    ending,
    starts: starts.length,
    waitedMs,
    isLate,
    broken: [
      ...(isExpected ? [] : [`it ended as ${ending.status}: ${ending.text}`]),
      ...(!kind.isRepeatable && starts.length > 1 ? [`it started ${starts.length} times`] : []),
      ...(isLate && !kind.isRepeatable ? ['an instance that had resumed started it'] : []),
    ].map((rule) => `${kind.title} ${work.key}: ${rule}; ${timeline(observed, starts)}`),
  };
}

/** The times of a piece of work, in milliseconds after its request, for the message of a failed test. */
function timeline({ sentMs, endedMs, failed }: Observed, starts: readonly WorkStart[]): string {
  const started = starts.map(({ pid, atMs }) => `${pid === failed.pid ? 'there' : 'elsewhere'} ${atMs - sentMs}`);
  const times = { failed: failed.atMs - sentMs, resumed: failed.resumedMs - sentMs, ended: endedMs - sentMs };
  return `${JSON.stringify(times)}, started ${started.join(', ')}`;
}
