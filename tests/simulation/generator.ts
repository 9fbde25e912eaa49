/**
 * The generator: from a seed to a schedule. It says what will be asked of whom and when, what models answer, which tools
 * and hooks there are, and what goes wrong. It knows nothing of how the sessions are run.
 */
import {
  type CallPart,
  HOOK_POINTS,
  type HookPoint,
  HookRegistration,
  type HookTable,
  type JsonObject,
  Persona,
} from '@coxswain/protocol';
import { hostileSubjects, type PlannedCommand, planCommands } from './plan-commands.ts';
import { type PlannedCopy, planCopies } from './plan-copies.ts';
import { type PlannedDeletion, planDeletions } from './plan-deletions.ts';
import { PROMPTS, planHandoffs } from './plan-handoffs.ts';
import { planStrikes } from './plan-strikes.ts';
import { createRandom, type Random } from './random.ts';
import type { Strike } from './served/served-processes.ts';
import { TOOL_NAMES } from './sim-tools.ts';

/** One answer of a model. */
export interface PlannedAnswer {
  readonly text: string;
  readonly calls: readonly CallPart[];
  readonly delayMs: number;
  readonly fails: boolean;
  /** It does not stop when it is told to. */
  readonly deaf: boolean;
  /** A prompt of more messages is refused as too long. */
  readonly messagesMax?: number;
}

/** One session. */
export interface SessionPlan {
  readonly id: string;
  readonly answers: readonly PlannedAnswer[];
  /** No summary can be had of it. */
  readonly summariesFail?: boolean | undefined;
  /** Its personas hand it to each other. */
  readonly handsOff?: true;
  /** What its answers are said to have read: so many tokens for each message of their prompt. */
  readonly tokensPerMessage?: number | undefined;
}

/** A table of hooks from a moment on. */
export interface PlannedTable {
  readonly atMs: number;
  readonly table: HookTable;
}

/** One thing that goes wrong, or is mended. */
export type NemesisAct = { readonly atMs: number } & (
  | { readonly kind: 'crash'; readonly downMs: number }
  /** A crash just after one of the host's awaits, counted from this moment. */
  | { readonly kind: 'crash_at_await'; readonly awaits: number; readonly downMs: number }
  | { readonly kind: 'pause'; readonly forMs: number; readonly losesInbox: boolean }
  | { readonly kind: 'rival' }
  /** Another host starts just after one of the awaits of one that runs. */
  | { readonly kind: 'rival_at_await'; readonly awaits: number }
  /** A host is stopped in order, and another takes its place. */
  | { readonly kind: 'stop'; readonly downMs: number }
  | { readonly kind: 'outage'; readonly forMs: number }
  /** Each way between a host and the bus takes up to so long: a server that has just started, or has too much to do. */
  | { readonly kind: 'slow'; readonly forMs: number; readonly latencyMs: number }
  | ({ readonly kind: 'strike' } & Strike)
);

/** How often which small thing goes wrong. Probabilities. */
export interface FaultRates {
  readonly appendLost: number;
  readonly appendUnanswered: number;
  readonly appendLate: number;
  readonly readFails: number;
  /** A host reads its inbox from a server that does not have the newest commands yet. */
  readonly readBehind: number;
  readonly deliveryRepeated: number;
  readonly deliveryDelayed: number;
  readonly ackLost: number;
  readonly receiptLost: number;
  readonly blobFails: number;
  /** A message between a host and an instance is lost. */
  readonly servedLost: number;
  readonly hookSlow: number;
  readonly hookDead: number;
  readonly latencyMs: number;
}

/** Everything that a simulation does. */
export interface Schedule {
  readonly seed: number;
  readonly profile: string;
  readonly hosts: number;
  readonly faults: FaultRates;
  readonly hooks: HookTable;
  /** The table of every host becomes another one, in order of time. */
  readonly hookChanges?: readonly PlannedTable[];
  /** Copies among them: their models go on with what their origins' would say. */
  readonly sessions: readonly SessionPlan[];
  readonly commands: readonly PlannedCommand[];
  readonly copies?: readonly PlannedCopy[];
  readonly deletions?: readonly PlannedDeletion[];
  readonly nemesis: readonly NemesisAct[];
  /** The personas that instances serve, all in {@link PERSONA_VERSION}; sessions are started with their names. */
  readonly personas?: readonly Persona[];
  /** Its sessions may delegate; a plan is then of a persona, by its prompt. */
  readonly crew?: true;
  /** Probability that the person who looks after approvals decides one while the nemesis is still at work. */
  readonly attentive: number;
  /** Probability that someone interferes with a call just when it has been started. */
  readonly meddling: number;
}

/** For so long things go wrong; afterwards everything is mended, and sessions have to end. */
export const TROUBLE_MS = 10_000;

/** The one version of served personas. */
export const PERSONA_VERSION = 'v1';

/** Nothing small goes wrong. */
export const NO_FAULTS: FaultRates = {
  appendLost: 0,
  appendUnanswered: 0,
  appendLate: 0,
  readFails: 0,
  readBehind: 0,
  deliveryRepeated: 0,
  deliveryDelayed: 0,
  ackLost: 0,
  receiptLost: 0,
  blobFails: 0,
  servedLost: 0,
  hookSlow: 0,
  hookDead: 0,
  latencyMs: 1,
};

/** Makes the schedule of a seed. */
export function generate(seed: number): Schedule {
  const random = createRandom(seed);
  const profile = random.weighted([
    [1, 'calm'],
    [3, 'crashes'],
    [3, 'lossy'],
    [3, 'rivals'],
    [3, 'storm'],
  ] as const);
  const sessions = Array.from({ length: 1 + random.int(3) }, (_, index) =>
    planSession(random.fork(`session ${index}`), `s${index + 1}`),
  );
  const hooks = [...planHooks(random.fork('hooks')), ...planTold(random.fork('told hooks'))];
  const plans = sessions.map(({ commands: _, persona: __, ...plan }): SessionPlan => plan);
  const copies = planCopies(random.fork('copies'), plans, TROUBLE_MS);
  const all: SessionPlan[] = [
    ...plans,
    ...copies.map(({ as, root }) => ({ ...(plans.find(({ id }) => id === root) as SessionPlan), id: as })),
  ];
  return {
    seed,
    profile,
    hosts: profile === 'rivals' || profile === 'storm' ? 1 + random.int(2) : 1,
    faults: planFaults(random.fork('faults'), profile),
    hooks,
    hookChanges: planHookChanges(random.fork('hook changes'), hooks),
    sessions: all,
    personas: sessions.flatMap(({ persona }) => (persona ? [persona] : [])),
    copies,
    deletions: planDeletions(random.fork('deletions'), all, TROUBLE_MS),
    commands: sessions
      .flatMap(({ commands }) => commands)
      .concat(hostileSubjects(random.fork('hostile'), TROUBLE_MS))
      .sort((a, b) => a.atMs - b.atMs),
    nemesis: [
      ...planNemesis(random.fork('nemesis'), profile),
      ...planStrikes(random.fork('strikes'), profile, TROUBLE_MS),
      ...planSlowness(random.fork('slowness'), profile),
    ].sort((a, b) => a.atMs - b.atMs),
    attentive: random.pick([0, 0.5, 1]),
    meddling: random.pick([0, 0.1, 0.4]),
  };
}

// ---- sessions ----

function planSession(
  random: Random,
  id: string,
): SessionPlan & { readonly commands: PlannedCommand[]; readonly persona: Persona | null } {
  const context = random.fork('context');
  const overflows = context.chance(0.2);
  const plain = Array.from({ length: 3 + random.int(7) }, (_, index) => ({
    ...planAnswer(random, index),
    ...(overflows && context.chance(0.3) ? { messagesMax: 1 + context.int(6) } : {}),
  }));
  const callIds = plain.flatMap(({ calls }) => calls.map((call) => call.call_id));
  const features = random.fork('features');
  const isCounted = features.chance(0.3);
  const alone = startBody(random, context, features, isCounted);
  const { answers, start } = planHandoffs(random.fork('handoffs'), { answers: plain, start: alone }, isCounted);
  // Personas that hand over to each other are the host's.
  const isServed = start === alone && random.fork('served').chance(0.4);
  const persona = isServed
    ? Persona.parse({ ...(start.persona as JsonObject), name: `sim-${id}`, version: PERSONA_VERSION })
    : null;
  const started = persona ? { ...start, persona: persona.name } : start;
  return {
    id,
    answers,
    persona,
    commands: planCommands(random, { session: id, start: started, callIds, withinMs: TROUBLE_MS }),
    summariesFail: context.chance(0.3),
    ...(start === alone ? {} : { handsOff: true as const }),
    // What is reported goes before what is estimated, and short sessions would never fill their windows.
    ...(isCounted ? { tokensPerMessage: 5 } : {}),
  };
}

function planAnswer(random: Random, index: number): PlannedAnswer {
  const calls = random.chance(0.75)
    ? Array.from({ length: 1 + random.int(4) }, (_, i) => planCall(random, `a${index}c${i}`))
    : [];
  return {
    text: calls.length === 0 || random.chance(0.3) ? `answer ${index}` : '',
    calls,
    delayMs: random.chance(0.4) ? 0 : random.between(0, 2_500),
    fails: random.chance(0.03),
    deaf: random.chance(0.05),
  };
}

function planCall(random: Random, callId: string): CallPart {
  const part = { type: 'call', call_id: callId } as const;
  if (random.chance(0.04)) return { ...part, tool: 'no_such_tool', args: {} };
  if (random.chance(0.04)) return { ...part, tool: 'look', args: { n: 'not a number' } };
  return { ...part, tool: random.pick(TOOL_NAMES), args: { n: random.int(1_000) } };
}

function startBody(random: Random, context: Random, features: Random, isCounted: boolean): JsonObject {
  const prompt = random.chance(0.1) ? 'long '.repeat(20_000) : 'hello';
  const maxTurns = random.pick([1, 3, 8, 50, 50]);
  const parallelCalls = random.pick([1, 2, 8]);
  return {
    prompt,
    model: 'sim/model',
    permissions: {
      rules: [
        { tool: 'ask_*', action: 'ask' },
        { tool: 'forbidden', action: 'deny' },
        { tool: '*', action: 'allow' },
      ],
    },
    max_turns: maxTurns,
    limits: { parallel_calls: parallelCalls, ...(isCounted ? planBudgets(features) : {}) },
    persona: {
      name: 'sim',
      prompt: PROMPTS.sim as string,
      steering: { steering: random.pick(['all', 'one_at_a_time']), followups: random.pick(['all', 'one_at_a_time']) },
      ...(features.chance(0.25) ? { daemon: planDaemon(features) } : {}),
      ...(features.chance(0.2) ? { stop_when: planStop(features) } : {}),
      ...(isCounted && features.chance(0.3) ? { budget_thresholds: features.pick([[], [10, 20, 30, 100], [99]]) } : {}),
      ...(parallelCalls === 2 ? { on_unknown_outcome: 'ask' } : {}),
      ...(context.chance(0.5) ? planContext(context) : {}),
      ...planSteps(random.fork('steps'), isCounted),
    },
  };
}

/** Steps of every boundary, some with budgets that they do not keep. */
function planSteps(random: Random, isCounted: boolean): JsonObject {
  if (random.chance(0.75)) return {};
  const steps = Array.from({ length: 1 + random.int(3) }, (_, index) => ({
    name: `step${index}`,
    prompt: `Do part ${index}.`,
    error_boundary: random.pick(['fail', 'continue', 'continue', 'escalate']),
    ...(random.chance(0.3) ? { tools: random.pick([['look'], ['look', 'count'], { deny: ['ask_*'] }]) } : {}),
    ...(isCounted && random.chance(0.4) ? { max_tokens: random.pick([30, 120]) } : {}),
  }));
  return { steps };
}

/** Tight enough for most runs to reach some of it, and for many to reach its end. */
function planBudgets(random: Random): JsonObject {
  return random.pick([
    { tokens: random.pick([40, 150, 600]) },
    { usd: random.pick([0.000_2, 0.001, 0.004]) },
    { wall_time_ms: random.pick([1_500, 6_000, 20_000]) },
    { tokens: 400, usd: 0.002, wall_time_ms: 10_000 },
  ]);
}

const DAY_MS = 24 * 60 * 60 * 1_000;

function planDaemon(random: Random): JsonObject {
  return random.chance(0.7) ? { wake_interval_ms: random.pick([1_000, 4_000, 3 * DAY_MS]) } : {};
}

function planStop(random: Random): JsonObject[] {
  const conditions = [{ text: 'answer 2' }, { text: '/ANSWER [13]$/i' }, { tool: 'fin*' }, { predicate: 'enough' }];
  const first = random.pick(conditions);
  return random.chance(0.5) ? [first] : [first, { predicate: 'enough' }];
}

function planContext(random: Random): JsonObject {
  return {
    model: { name: 'sim/model', context_window: random.pick([300, 1_000]) },
    compaction: {
      strategy: random.pick(['summary', 'notes', 'clear_tool_results']),
      keep_turns: random.int(3),
      reserve: 50,
    },
  };
}

// ---- the world ----

/** Points whose hooks have plans of their own, so that they are not as frequent as the others. */
const PLANNED_APART: ReadonlySet<HookPoint> = new Set<HookPoint>([
  'pre_compact',
  'post_compact',
  'transform_context',
  'permission_replied',
  'loop_checkpoint',
  'OnBudgetThreshold',
  'PreStep',
  'PostStep',
  'OnHandoffEmitted',
]);

function planHooks(random: Random): HookTable {
  if (random.chance(0.5)) return [];
  const points = HOOK_POINTS.filter((point) => !PLANNED_APART.has(point));
  const context = random.fork('context');
  const timeouts = random.fork('timeouts');
  const late = [
    ...(context.chance(0.35) ? [context.pick(['pre_compact', 'post_compact', 'transform_context'] as const)] : []),
    ...(context.chance(0.2) ? [context.pick(['pre_suspend', 'post_resume', 'session_idle'] as const)] : []),
  ];
  const shaping = late.map((point) => HookRegistration.parse({ id: `hook-${point}`, point, timeout_ms: 1_000 }));
  const others = Array.from({ length: 1 + random.int(4) }, (_, index) =>
    HookRegistration.parse({
      id: `hook-${index}`,
      point: random.pick(points),
      priority: random.int(3),
      // The longer one leaves time for another instance.
      timeout_ms: timeouts.pick([1_000, 5_000]),
      on_error: random.pick(['fail_closed', 'fail_open']),
    }),
  );
  const steps = random.fork('hooks of steps');
  const stepping = (['PreStep', 'PostStep'] as const)
    .filter(() => steps.chance(0.25))
    .map((point) => HookRegistration.parse({ id: `hook-${point}`, point, timeout_ms: 1_000 }));
  const handing = random.fork('hooks of hand-offs').chance(0.25)
    ? [HookRegistration.parse({ id: 'hook-handoff', point: 'OnHandoffEmitted', timeout_ms: 1_000 })]
    : [];
  return [...others, ...shaping, ...stepping, ...handing];
}

/** Hooks that are told of what happens, and of which some begin jobs. */
function planTold(random: Random): HookTable {
  if (random.chance(0.7)) return [];
  const kinds = random.pick(['*', 'kind =~ "^(iteration_start|pre_tool_dispatch|loop_exit)$"', 'iteration_end']);
  const told = [
    { id: 'told-seams', point: 'loop_checkpoint', pattern: kinds, timeout_ms: 500 },
    { id: 'told-decisions', point: 'permission_replied', pattern: random.pick(['*', 'count', 'decision == "deny"']) },
    { id: 'told-turns', point: 'post_turn', pattern: random.pick(['*', 'turn == "2"']), timeout_ms: 500 },
  ];
  return told.filter(() => random.chance(0.6)).map((one) => HookRegistration.parse(one));
}

/** Registrations that are not heard of for a while, and some that are taken back. */
function planHookChanges(random: Random, hooks: HookTable): PlannedTable[] {
  if (hooks.length === 0 || random.chance(0.5)) return [];
  let table = hooks;
  return Array.from({ length: 1 + random.int(4) }, () => random.between(0, TROUBLE_MS))
    .sort((a, b) => a - b)
    .map((atMs) => {
      const one = random.pick(hooks);
      const others = table.filter(({ id }) => id !== one.id);
      table = random.weighted<HookTable>([
        [2, [...others, { ...one, unavailable: true }]],
        [2, [...others, one]],
        [1, others],
      ]);
      return { atMs, table };
    });
}

function planFaults(random: Random, profile: string): FaultRates {
  const latencyMs = random.pick([0.5, 2, 10]);
  const hooks = { hookSlow: random.pick([0, 0.2]), hookDead: random.pick([0, 0.1]) };
  if (profile === 'calm') return { ...NO_FAULTS, ...hooks, latencyMs };
  const rate = (most: number) => (random.chance(0.5) ? random.between(0, most) : 0);
  const small = { deliveryRepeated: rate(0.3), deliveryDelayed: rate(0.2), receiptLost: rate(0.3), ackLost: rate(0.2) };
  if (profile === 'crashes') return { ...NO_FAULTS, ...hooks, ...small, latencyMs };
  return {
    ...hooks,
    ...small,
    latencyMs,
    appendLost: rate(0.1),
    appendUnanswered: rate(0.1),
    appendLate: rate(0.08),
    readFails: rate(0.1),
    readBehind: random.fork('read behind').pick([0, 0.1, 0.3]),
    blobFails: rate(0.3),
    servedLost: random.fork('served').pick([0, 0, 0.03]),
  };
}

function planNemesis(random: Random, profile: string): NemesisAct[] {
  if (profile === 'calm' || profile === 'lossy') {
    if (profile === 'calm' || random.chance(0.5)) return [];
    return [{ kind: 'outage', atMs: random.between(0, TROUBLE_MS), forMs: random.between(100, 6_000) }];
  }
  const count = 2 + random.int(profile === 'storm' ? 7 : 4);
  return Array.from({ length: count }, () => planAct(random, profile)).sort((a, b) => a.atMs - b.atMs);
}

function planSlowness(random: Random, profile: string): NemesisAct[] {
  if (profile === 'calm' || random.chance(0.7)) return [];
  return Array.from({ length: 1 + random.int(2) }, () => ({
    kind: 'slow',
    atMs: random.between(0, TROUBLE_MS),
    forMs: random.between(200, 5_000),
    latencyMs: random.between(50, 1_500),
  }));
}

function planAct(random: Random, profile: string): NemesisAct {
  // Most sessions have most of their work early.
  const atMs = random.between(0, random.chance(0.5) ? TROUBLE_MS : TROUBLE_MS / 3);
  const downMs = random.between(600, 4_000);
  const crash = random.chance(0.5)
    ? ({ kind: 'crash', atMs, downMs } as const)
    : ({ kind: 'crash_at_await', atMs, awaits: 1 + random.int(60), downMs } as const);
  if (profile === 'crashes') return random.chance(0.1) ? { kind: 'stop', atMs, downMs } : crash;
  return random.weighted<NemesisAct>([
    [profile === 'rivals' ? 1 : 3, crash],
    [3, { kind: 'pause', atMs, forMs: random.between(50, 6_000), losesInbox: random.chance(0.5) }],
    [2, { kind: 'rival', atMs }],
    [2, { kind: 'rival_at_await', atMs, awaits: 1 + random.int(60) }],
    [1, { kind: 'stop', atMs, downMs }],
    [profile === 'rivals' ? 0 : 1, { kind: 'outage', atMs, forMs: random.between(100, 4_000) }],
  ]);
}
