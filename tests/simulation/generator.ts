/**
 * The generator: from a seed to a schedule. It says what will be asked of whom and when, what models answer, which tools
 * and hooks there are, and what goes wrong. It knows nothing of how the sessions are run.
 */
import { BOUNDS, type CallPart, HookRegistration, type HookTable, type JsonObject } from '@coxswain/protocol';
import { createRandom, type Random } from './random.ts';
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
}

/** One message to the command stream. */
export interface PlannedCommand {
  readonly atMs: number;
  readonly session: string;
  readonly verb: string;
  readonly payload: Uint8Array;
  /** Null: its sender gives it no id. */
  readonly id: string | null;
  readonly tell: boolean;
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
);

/** How often which small thing goes wrong. Probabilities. */
export interface FaultRates {
  readonly appendLost: number;
  readonly appendUnanswered: number;
  readonly appendLate: number;
  readonly readFails: number;
  readonly deliveryRepeated: number;
  readonly deliveryDelayed: number;
  readonly ackLost: number;
  readonly receiptLost: number;
  readonly blobFails: number;
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
  readonly sessions: readonly SessionPlan[];
  readonly commands: readonly PlannedCommand[];
  readonly nemesis: readonly NemesisAct[];
  /** Probability that the person who looks after approvals decides one while the nemesis is still at work. */
  readonly attentive: number;
  /** Probability that someone interferes with a call just when it has been started. */
  readonly meddling: number;
}

/** For so long things go wrong; afterwards everything is mended, and sessions have to end. */
export const TROUBLE_MS = 10_000;

/** Nothing small goes wrong. */
export const NO_FAULTS: FaultRates = {
  appendLost: 0,
  appendUnanswered: 0,
  appendLate: 0,
  readFails: 0,
  deliveryRepeated: 0,
  deliveryDelayed: 0,
  ackLost: 0,
  receiptLost: 0,
  blobFails: 0,
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
  return {
    seed,
    profile,
    hosts: profile === 'rivals' || profile === 'storm' ? 1 + random.int(2) : 1,
    faults: planFaults(random.fork('faults'), profile),
    hooks,
    hookChanges: planHookChanges(random.fork('hook changes'), hooks),
    sessions: sessions.map(({ id, answers, summariesFail }) => ({ id, answers, summariesFail })),
    commands: sessions
      .flatMap(({ commands }) => commands)
      .concat(hostileSubjects(random.fork('hostile')))
      .sort((a, b) => a.atMs - b.atMs),
    nemesis: planNemesis(random.fork('nemesis'), profile),
    attentive: random.pick([0, 0.5, 1]),
    meddling: random.pick([0, 0.1, 0.4]),
  };
}

// ---- sessions ----

function planSession(random: Random, id: string): SessionPlan & { readonly commands: PlannedCommand[] } {
  const context = random.fork('context');
  const overflows = context.chance(0.2);
  const answers = Array.from({ length: 3 + random.int(7) }, (_, index) => ({
    ...planAnswer(random, index),
    ...(overflows && context.chance(0.3) ? { messagesMax: 1 + context.int(6) } : {}),
  }));
  const callIds = answers.flatMap(({ calls }) => calls.map((call) => call.call_id));
  const commands = [command(random, id, 'start', startBody(random, context), random.between(0, 1_500), 'start-1')];
  const count = 3 + random.int(10);
  for (let i = 0; i < count; i++) {
    const atMs = random.between(0, TROUBLE_MS);
    if (random.chance(0.12)) {
      const again = random.pick(commands);
      commands.push({ ...again, atMs: Math.max(atMs, again.atMs) });
    } else if (random.chance(0.08)) commands.push(hostileCommand(random, id, atMs));
    else {
      const [verb, body] = ask(random, callIds);
      commands.push(command(random, id, verb, body, atMs, random.chance(0.8) ? `${verb}-${i}` : null));
    }
  }
  return { id, answers, commands, summariesFail: context.chance(0.3) };
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

function startBody(random: Random, context: Random): JsonObject {
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
    limits: { parallel_calls: parallelCalls },
    persona: {
      name: 'sim',
      prompt: 'You are simulated.',
      steering: { steering: random.pick(['all', 'one_at_a_time']), followups: random.pick(['all', 'one_at_a_time']) },
      ...(random.chance(0.15) ? { daemon: {} } : {}),
      ...(parallelCalls === 2 ? { on_unknown_outcome: 'ask' } : {}),
      ...(context.chance(0.5) ? planContext(context) : {}),
    },
  };
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

function ask(random: Random, callIds: readonly string[]): [verb: string, body: JsonObject] {
  const callId = callIds.length > 0 && random.chance(0.95) ? random.pick(callIds) : 'nothing';
  const mode = random.pick(['finish_step', 'finish_step', 'interrupt_immediate', 'audit_only']);
  const verb = random.weighted([
    [30, 'steer'],
    [8, 'remind'],
    [12, 'followup'],
    [14, 'approve'],
    [3, 'cancel'],
    [12, 'cancel_call'],
    [6, 'suspend'],
    [6, 'resume'],
    [10, 'prompt'],
  ] as const);
  switch (verb) {
    case 'steer':
    case 'remind': {
      const preempts = mode === 'interrupt_immediate' && random.chance(0.4) ? { preempt: true } : {};
      return [verb, { body: `${verb} ${random.int(1_000)}`, mode, ...preempts }];
    }
    case 'followup':
    case 'prompt':
      return [verb, { body: `${verb} ${random.int(1_000)}` }];
    case 'approve': {
      const decision = random.pick(['allow', 'allow', 'deny']);
      const edited = decision === 'allow' && random.chance(0.2) ? { args: { n: 1_000 + random.int(1_000) } } : {};
      return [verb, { call_id: callId, decision, ...edited }];
    }
    case 'cancel_call':
      return [verb, { call_id: callId, timeout_ms: random.pick([0, 100, 5_000]), inject_reminder: random.chance(0.5) }];
    default:
      return [verb, {}];
  }
}

function command(
  random: Random,
  session: string,
  verb: string,
  body: JsonObject,
  atMs: number,
  id: string | null,
): PlannedCommand {
  return { atMs, session, verb, payload: Buffer.from(JSON.stringify(body), 'utf8'), id, tell: random.chance(0.8) };
}

// ---- hostility ----

function hostileCommand(random: Random, session: string, atMs: number): PlannedCommand {
  const noise = Buffer.from(Array.from({ length: random.int(40) }, () => random.int(256)));
  const [verb, payload] = random.pick<readonly [string, Uint8Array]>([
    ['steer', noise],
    ['steer', Buffer.from('{"body":')],
    ['steer', Buffer.from('{"body":"x","mode":"whenever"}')],
    ['approve', Buffer.from('{"call_id":"a0c0","decision":"allow","surprise":1}')],
    ['steer', Buffer.alloc(BOUNDS.commandBodyMaxBytes + 1, 120)],
    ['session_failed', Buffer.from('{}')],
    ['call_outcome', Buffer.from('{}')],
    ['stear', Buffer.from('x')],
    ['delete', Buffer.from('{}')],
  ]);
  return { atMs, session, verb, payload, id: random.chance(0.3) ? random.pick(['*', 'a.b', '>']) : null, tell: true };
}

function hostileSubjects(random: Random): PlannedCommand[] {
  if (random.chance(0.7)) return [];
  const session = random.pick(['*', '>', 'a b', 'x'.repeat(65)]);
  return [
    { atMs: random.between(0, TROUBLE_MS), session, verb: 'steer', payload: Buffer.from('x'), id: null, tell: true },
  ];
}

// ---- the world ----

function planHooks(random: Random): HookTable {
  if (random.chance(0.5)) return [];
  const points = [
    'session_start',
    'user_prompt_submit',
    'PreToolUse',
    'gate_tool_calls',
    'permission_asked',
    'PostToolUse',
    'post_turn',
    'file_edited',
    'session_error',
    'session_end',
    'pre_finish',
    'on_unsettled_detected',
    'post_finish',
  ] as const;
  const context = random.fork('context');
  const late = context.chance(0.3) ? [context.pick(['pre_compact', 'post_compact', 'transform_context'] as const)] : [];
  const shaping = late.map((point) => HookRegistration.parse({ id: 'hook-context', point, timeout_ms: 1_000 }));
  const others = Array.from({ length: 1 + random.int(4) }, (_, index) =>
    HookRegistration.parse({
      id: `hook-${index}`,
      point: random.pick(points),
      priority: random.int(3),
      timeout_ms: 1_000,
      on_error: random.pick(['fail_closed', 'fail_open']),
    }),
  );
  return [...others, ...shaping];
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
    blobFails: rate(0.3),
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
