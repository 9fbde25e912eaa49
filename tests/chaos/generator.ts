/**
 * The generator: from a seed, what clients will do to each session and when, whatever the nemesis does meanwhile. Only
 * what must answer to a session (approvals, the next prompt) waits for it; how it answers is drawn here as well.
 */
import { createRandom, type Random } from '../simulation/random.ts';

/** What a client does to a session besides starting it and answering it. */
export type ActionKind =
  | 'steer'
  | 'interrupt'
  | 'preempt'
  | 'audit'
  | 'remind'
  | 'followup'
  | 'cancel_call'
  | 'cancel'
  /** The last command once more, under the same id. */
  | 'repeat';

/** One deed of a client. */
export interface PlannedAction {
  /** From the beginning of the load. */
  readonly atMs: number;
  readonly kind: ActionKind;
  readonly commandId: string;
  /** Through the typed client, which waits for the receipt; else bare on the bus. */
  readonly over: 'client' | 'bare';
  /** For `repeat`: with the id by which the store would drop it, or without, so that the session has to. */
  readonly isForStore?: boolean;
}

/** How the client of a session answers it: one after another, from the beginning again when none is left. */
export interface PlannedAnswer {
  readonly decision: 'allow' | 'deny';
  readonly afterMs: number;
}

/** What a model answers, as in docs/guides/scripted-models.md. */
export interface PlannedTurn {
  readonly delay_ms: number;
  readonly text?: string;
  readonly calls?: readonly { readonly tool: string; readonly args: { readonly ms: number; readonly what: string } }[];
}

/** Everything about one session. */
export interface PlannedSession {
  readonly id: string;
  readonly startAtMs: number;
  /** No prompt is sent after this. */
  readonly promptsUntilMs: number;
  /** From a run's end to the next prompt. */
  readonly thinkMs: number;
  /** Which of the plan's scripts its model plays. */
  readonly script: number;
  /** The tool whose calls a person has to allow. */
  readonly asksFor: string | null;
  readonly answers: readonly PlannedAnswer[];
  readonly actions: readonly PlannedAction[];
}

/** Everything that clients will do. */
export interface LoadPlan {
  readonly loadMs: number;
  readonly scripts: readonly (readonly PlannedTurn[])[];
  readonly sessions: readonly PlannedSession[];
}

/** How heavy a load is, and of what. Times are drawn evenly between two bounds. */
export interface LoadShape {
  readonly modelMs: readonly [number, number];
  readonly toolMs: readonly [number, number];
  /** Answers with calls before the one that ends a run. */
  readonly callTurns: readonly [number, number];
  readonly thinkMs: readonly [number, number];
  readonly answerMs: readonly [number, number];
  /** Mean time from one action to the next of the same session. */
  readonly actionEveryMs: number;
  readonly actions: readonly (readonly [weight: number, kind: ActionKind])[];
  readonly tools: readonly (readonly [weight: number, tool: string])[];
  /** Of all sessions, those in which a person has to allow the calls of one of the tools. */
  readonly askShare: number;
  /** How long sessions live; the next takes the place of each. Without it: all the time. */
  readonly lifeMs?: number;
  /** All have started by then. */
  readonly rampMs: number;
}

/** The load of a scenario that says nothing else: half of what two cores carry with 200 sessions. */
export const USUAL_LOAD: LoadShape = {
  modelMs: [500, 1_500],
  toolMs: [300, 2_000],
  callTurns: [4, 8],
  thinkMs: [200, 1_000],
  answerMs: [200, 1_500],
  actionEveryMs: 8_000,
  actions: [
    [8, 'steer'],
    [3, 'interrupt'],
    [1, 'preempt'],
    [2, 'audit'],
    [2, 'remind'],
    [2, 'followup'],
    [2, 'cancel_call'],
    [1, 'cancel'],
    [4, 'repeat'],
  ],
  tools: [
    [3, 'read_tide'],
    [5, 'book_berth'],
    [1, 'unload_cargo'],
  ],
  askShare: 0.3,
  rampMs: 5_000,
};

const SCRIPTS = 16;
const ANSWERS = 16;

/** Plans a load. */
export function planLoad(seed: number, sessions: number, loadMs: number, shape: LoadShape): LoadPlan {
  const random = createRandom(seed).fork('load');
  return {
    loadMs,
    scripts: Array.from({ length: SCRIPTS }, (_, i) => planScript(random.fork(`script ${i}`), shape)),
    sessions: Array.from({ length: sessions }, (_, i) =>
      planPlace(random.fork(`session ${i}`), i, loadMs, shape),
    ).flat(),
  };
}

function planScript(random: Random, { modelMs, toolMs, callTurns, tools }: LoadShape): PlannedTurn[] {
  const calls = random.int(callTurns[1] - callTurns[0] + 1) + callTurns[0];
  const delay_ms = () => Math.round(random.between(...modelMs));
  const call = (turn: number, i: number) => ({
    tool: random.weighted(tools),
    args: { ms: Math.round(random.between(...toolMs)), what: `call ${turn}.${i}` },
  });
  return [
    ...Array.from({ length: calls }, (_, turn) => ({
      delay_ms: delay_ms(),
      calls: Array.from({ length: random.chance(0.2) ? 2 : 1 }, (_, i) => call(turn, i)),
    })),
    { delay_ms: delay_ms(), text: 'All is done.' },
  ];
}

/** The sessions that have one place among those that run, one after another. */
function planPlace(random: Random, place: number, loadMs: number, shape: LoadShape): PlannedSession[] {
  const { lifeMs = loadMs, rampMs } = shape;
  const planned: PlannedSession[] = [];
  let atMs = random.between(0, rampMs);
  for (let life = 0; atMs < loadMs; life++) {
    // Lives of different lengths: else all places would change at once.
    const untilMs =
      life === 0 ? Math.min(loadMs, atMs + lifeMs * random.between(0.3, 1)) : Math.min(loadMs, atMs + lifeMs);
    const end = shape.lifeMs === undefined ? loadMs : untilMs;
    planned.push(planSession(random, `chaos-${place}-${life}`, atMs, end, shape));
    atMs = end;
  }
  return planned;
}

function planSession(random: Random, id: string, startAtMs: number, untilMs: number, shape: LoadShape): PlannedSession {
  const actions: PlannedAction[] = [];
  let atMs = startAtMs + random.between(500, shape.actionEveryMs);
  for (let i = 0; atMs < untilMs; i++) {
    const kind = random.weighted(shape.actions);
    actions.push({
      atMs,
      kind,
      commandId: `${kind}-${i}`,
      over: random.chance(0.25) ? 'client' : 'bare',
      ...(kind === 'repeat' ? { isForStore: random.chance(0.5) } : {}),
    });
    atMs += shape.actionEveryMs * random.between(0.5, 1.5);
  }
  return {
    id,
    startAtMs,
    promptsUntilMs: untilMs,
    thinkMs: random.between(...shape.thinkMs),
    script: random.int(SCRIPTS),
    asksFor: random.chance(shape.askShare) ? random.pick(shape.tools)[1] : null,
    answers: Array.from({ length: ANSWERS }, () => ({
      decision: random.chance(0.85) ? ('allow' as const) : ('deny' as const),
      afterMs: random.between(...shape.answerMs),
    })),
    actions,
  };
}
