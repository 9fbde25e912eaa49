/** One run of the failure matrix: a piece of work, and an instance that fails at a random time. */
import { createRandom } from '../simulation/random.ts';
import type { Ending } from './served-endings.ts';
import type { ServedKindCase } from './served-kinds.ts';
import { pass, type StagedInstance, type Start, stage } from './served-stage.ts';

/** Ways in which an instance fails. A frozen one resumes later. */
export const FAILURES = ['kill', 'freeze'] as const;
/** When it fails. The acceptance is the report `running`, or the answer if it is faster. */
export const MOMENTS = ['before the ask', 'between ask and acceptance', 'after the acceptance'] as const;

/** One cell of the matrix. */
export interface MatrixCell {
  readonly kind: ServedKindCase;
  readonly failure: (typeof FAILURES)[number];
  readonly instances: number;
  readonly moment: (typeof MOMENTS)[number];
}

/** The result of one run. Times in virtual milliseconds. */
export interface MatrixRun {
  readonly ending: Ending | undefined;
  readonly starts: readonly Start[];
  /** How much longer its session waited than the work took: on the failed instance before the failure, and again. */
  readonly waitedMs: number;
  /** Whether another instance failed than the one that had the work. */
  readonly isBystander: boolean;
  /** Starts on a frozen instance that had resumed, after the host had chosen another one or had the end. */
  readonly lateStarts: readonly Start[];
}

/** Longer than any run, milliseconds. */
const RUN_MAX_MS = 60_000;
/** The limit for a session that waits for the end of its work, milliseconds. */
const WAIT_MAX_MS = 6_000;
/** A hook that takes longer is reported as running. */
const QUESTION_REPORTED_MS = 20;

/** Runs one cell with a seed, which chooses the times, the failing instance, and the length of the work. */
export async function runMatrixCell(cell: MatrixCell, seed: number): Promise<MatrixRun> {
  const { kind, failure, moment } = cell;
  const random = createRandom(seed).fork(`${kind.title} ${failure} ${moment} ${cell.instances}`);
  const takesMs = Math.round(random.between(5, 3_000));
  const hopMs = random.between(1, 20);
  const on = stage(kind, { takesMs, hopMs });
  const instances: StagedInstance[] = [];
  for (let i = 0; i < cell.instances; i++) {
    instances.push(await on.serve(`i${i}`));
    // The phases of the heartbeats differ.
    await pass(random.between(0, 300));
  }
  await pass(random.between(500, 1_500));
  const victim = random.pick(instances);
  const isBystander = random.chance(0.2);
  on.bus.next = instances.indexOf(victim) + (isBystander ? 1 : 0);

  // Request and report; for held work also `ready` and the order.
  const acceptanceMs = kind.isHeld ? 8 * hopMs : 4 * hopMs + (kind.isStreamed ? 0 : QUESTION_REPORTED_MS);
  const failsMs = {
    'before the ask': -random.between(0, 5_000),
    'between ask and acceptance': random.between(0, acceptanceMs),
    'after the acceptance': acceptanceMs + random.between(0, takesMs),
  }[moment];
  const frozenMs = failure === 'freeze' ? random.between(100, 20_000) : 0;
  let failedMs = Number.POSITIVE_INFINITY;
  let wokenMs = Number.POSITIVE_INFINITY;
  const fail = () => {
    failedMs = performance.now();
    if (failure === 'kill') return victim.process.kill();
    victim.process.freeze();
    setTimeout(() => {
      wokenMs = performance.now();
      victim.process.wake();
    }, frozenMs);
  };

  if (failsMs < 0) {
    fail();
    await pass(-failsMs);
  }
  const askedMs = performance.now();
  const asked = on.ask();
  if (failsMs >= 0) setTimeout(fail, failsMs);
  while (!asked.endedMs && performance.now() - askedMs < RUN_MAX_MS) await pass(500);
  const endedMs = asked.endedMs ?? Number.POSITIVE_INFINITY;
  // A frozen instance resumes, and handles the messages in its socket.
  await pass(Math.max(0, failsMs) + frozenMs + 2_000);

  const { starts } = on;
  const answeredBy = asked.ending?.status === 'answered' ? asked.ending.text : '';
  const lost = starts.find(({ instance, atMs }) => instance === victim.id && atMs < failedMs);
  const lostMs = lost && answeredBy !== `by ${victim.id}` ? Math.max(0, failedMs - lost.atMs) : 0;
  const isLate = ({ instance, atMs }: Start, place: number) =>
    instance === victim.id &&
    atMs >= wokenMs &&
    // The abort of the other copies of a step follows its end.
    (kind.isHeld ? atMs > endedMs || place > 0 : kind.isStreamed && atMs > endedMs + 2 * hopMs);
  return {
    ending: asked.ending,
    starts,
    waitedMs: endedMs - askedMs - lostMs - (answeredBy ? takesMs : 0),
    isBystander,
    lateStarts: starts.filter(isLate),
  };
}

/** The rules that a run breaks. */
export function brokenRules({ kind, moment }: MatrixCell, run: MatrixRun): string[] {
  const { ending, starts, waitedMs, isBystander, lateStarts } = run;
  const mayBeLost = !kind.isRepeatable && moment !== 'before the ask' && !isBystander;
  const isExpected = ending?.status === 'answered' || (mayBeLost && ending?.status === 'lost');
  return [
    ...(isExpected ? [] : [`it ended as ${ending?.status}: ${ending?.text}`]),
    ...(!kind.isRepeatable && starts.length > 1 ? [`it started ${starts.length} times`] : []),
    ...(waitedMs <= WAIT_MAX_MS ? [] : [`its session waited ${Math.round(waitedMs)} ms`]),
    ...(lateStarts.length === 0 ? [] : ['an instance that had resumed started it']),
  ];
}
