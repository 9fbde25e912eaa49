/**
 * Moves: inputs of a session in few words. An outcome is addressed to the effect that is open when the move is made, as
 * by a runner. A move without an open effect fails the test.
 */
import {
  type AfterCopy,
  type AssistantMessage,
  type CallOutcome,
  type CommandInput,
  type CompactOutcome,
  type CopyOrigin,
  DEFAULT_THRESHOLDS,
  DEFAULT_TRAITS,
  type ErrorCode,
  fingerprint,
  HANDOFF_TOOL,
  type HookAnswer,
  type HookFailure,
  HookRegistration,
  type HookTable,
  type Input,
  isHookFailure,
  type JobReceipt,
  type Json,
  type JsonObject,
  type ModelOutcome,
  type PermissionRule,
  type PinnedPrice,
  type Provision,
  parseBody,
  parseCallOutcome,
  parseFeedback,
  parseReturn,
  type RememberedRule,
  type ResolvedCompaction,
  type RunBudgets,
  type Step,
  type StopAnswer,
  type StopCondition,
  type ToolDefinition,
  type ToolTraits,
  type TransformContext,
  type Verb,
} from '@coxswain/protocol';
import { type SessionState, sessionTimer } from '../src/mod.ts';

/** Time passes. */
export class Later {
  readonly ms: number;
  constructor(ms: number) {
    this.ms = ms;
  }
}

/** Milliseconds that pass before the next input. */
export const later = (ms: number): Move => new Later(ms);

/** One move, or several in order. */
export type Move = Input | Later | ((state: SessionState) => Input) | readonly Move[];

// ---- commands ----

/** A command as validated at the edge: parsed, with defaults. */
export function command(verb: Verb, id: string, body: JsonObject = {}, actor?: string): CommandInput {
  const parsed = parseBody(verb, body);
  if (!parsed.ok) throw new Error(`${verb} is not well-formed: ${parsed.problem.message}`);
  return {
    type: 'command',
    verb,
    command_id: id,
    body: parsed.body,
    ...(actor === undefined ? {} : { actor: { name: actor, verified: false } }),
  };
}

/** An unreadable command. */
export function malformed(verb: string, id: string, code: ErrorCode): CommandInput {
  return { type: 'command', verb, command_id: id, body: {}, problem: { code, message: code, field: 'body' } };
}

export const started = (settings: JsonObject = {}, id = 'start-1') =>
  command('start', id, { prompt: 'hello', ...settings });
export const prompted = (id = 'prompt-1') => command('prompt', id, { body: 'and now this' });
export const steered = (id: string, mode = 'finish_step', more: JsonObject = {}) =>
  command('steer', id, { body: `do ${id}`, mode, ...more });
export const reminded = (id: string, mode = 'finish_step', more: JsonObject = {}) =>
  command('remind', id, { body: `mind ${id}`, mode, ...more });
export const followedUp = (id: string, more: JsonObject = {}) =>
  command('followup', id, { body: `then ${id}`, ...more });
/** A preempting interrupt. */
export const preempted = (id: string, verb: 'steer' | 'remind' = 'steer', actor?: string) =>
  command(verb, id, { body: `at once ${id}`, preempt: true }, actor);
export const cancelled = (id = 'cancel-1', reason?: string, actor?: string) =>
  command('cancel', id, reason === undefined ? {} : { reason }, actor);
export const callCancelled = (callId: string, body: JsonObject = {}, id = `cancel-${callId}`, actor?: string) =>
  command('cancel_call', id, { call_id: callId, ...body }, actor);
export const suspended = (id = 'suspend-1', body: JsonObject = {}) => command('suspend', id, body);
export const signalled = (name: string, id = `signal-${name}`, data?: Json) =>
  command('signal', id, { name, ...(data === undefined ? {} : { data }) });
export const resumed = (id = 'resume-1') => command('resume', id);

export const revoked = (target: string, id = `revoke-${target}`) => command('revoke', id, { command_id: target });
export const replaced = (target: string, body = `rather than ${target}`, id = `replace-${target}`) =>
  command('replace', id, { command_id: target, body });

export const approved = (callId: string, body: JsonObject = {}, id = `allow-${callId}`) =>
  command('approve', id, { call_id: callId, decision: 'allow', ...body }, 'ada');
export const denied = (callId: string, body: JsonObject = {}, id = `deny-${callId}`) =>
  command('approve', id, { call_id: callId, decision: 'deny', ...body }, 'bob');

// ---- provision ----

function tool(name: string, traits: Partial<ToolTraits> = {}): ToolDefinition {
  return {
    name,
    description: '',
    input_schema: { type: 'object' },
    source: 'test',
    traits: { ...DEFAULT_TRAITS, ...traits },
  };
}

/** Tools are named after the rules and traits that apply to them. */
const TOOLS: readonly ToolDefinition[] = [
  tool('read'),
  tool('ask'),
  tool('forbidden'),
  tool('done', { terminates: true }),
  tool('seq', { sequential: true }),
  tool('long', { long_running: true }),
];
const RULES: readonly PermissionRule[] = [
  { tool: 'ask', action: 'ask' },
  { tool: 'forbidden', action: 'deny' },
  { tool: '*', action: 'allow' },
];

/** The settings of a session's provision. */
export interface Surroundings {
  readonly hooks?: HookTable;
  readonly tools?: readonly ToolDefinition[];
  readonly rules?: readonly PermissionRule[];
  readonly maxTurns?: number;
  readonly parallelCalls?: number;
  readonly steering?: 'all' | 'one_at_a_time';
  readonly followups?: 'all' | 'one_at_a_time';
  readonly daemon?: boolean;
  readonly onUnknownOutcome?: 'interrupted' | 'ask';
  readonly wakeIntervalMs?: number;
  /** Compaction, with a window that every second prompt exceeds by default. */
  readonly compaction?: Partial<ResolvedCompaction>;
  readonly budgets?: RunBudgets['limits'];
  readonly thresholds?: readonly number[];
  readonly price?: PinnedPrice;
  readonly stopWhen?: readonly StopCondition[];
  readonly transformContext?: TransformContext;
  readonly steps?: readonly Step[] | undefined;
  /** Expiry of approvals, milliseconds. */
  readonly expireAfterMs?: number;
  /** Remembered rules of the persona. */
  readonly remembered?: readonly RememberedRule[];
  readonly notifies?: boolean;
  /** `coder` if not given. */
  readonly persona?: string;
  /** The identity of the definition; by default the host's. */
  readonly identity?: Provision['identity'];
  /** The root folder: `/` if not given. */
  readonly root?: string;
  /** Allowed targets of hand-offs. If given, the persona has the tool. */
  readonly handoffs?: readonly string[] | undefined;
  /** The final answer has a schema, with this number of repairs. */
  readonly outputRepairs?: number | undefined;
  /** The limits of the start for the whole run. */
  readonly runLimits?: Provision['run_limits'];
}

/** The settings as a provision. */
export function provision(around: Surroundings = {}): Provision {
  const { hooks = [], rules = RULES, persona = 'coder' } = around;
  const { tools = around.handoffs ? [...TOOLS, HANDOFF_TOOL] : TOOLS } = around;
  const fingerprint = (value: unknown) => JSON.stringify(value).length.toString(16);
  return {
    persona: { name: persona, version: '1' },
    identity: around.identity ?? { source: 'host', fingerprint: persona },
    definition: {
      name: persona,
      prompt: '',
      ...(around.onUnknownOutcome ? { on_unknown_outcome: around.onUnknownOutcome } : {}),
      ...(around.transformContext ? { transform_context: around.transformContext } : {}),
      ...(around.steps ? { steps: [...around.steps] } : {}),
      ...(around.handoffs ? { handoffs: [...around.handoffs] } : {}),
      ...(around.stopWhen ? { stop_when: [...around.stopWhen] } : {}),
    },
    model: { name: 'scripted/test.yaml' },
    system_prompt: 'You are coder.',
    tools: [...tools],
    hooks,
    permissions: {
      rules: [...rules],
      default: 'ask',
      ...(around.expireAfterMs === undefined ? {} : { expire_after_ms: around.expireAfterMs }),
    },
    ...(around.remembered ? { remembered: [...around.remembered] } : {}),
    ...(around.notifies ? { notifies: true as const } : {}),
    max_turns: around.maxTurns ?? 50,
    parallel_calls: around.parallelCalls ?? 8,
    drain: { steering: around.steering ?? 'all', followups: around.followups ?? 'one_at_a_time' },
    daemon: around.daemon ?? false,
    ...(around.wakeIntervalMs === undefined ? {} : { wake_interval_ms: around.wakeIntervalMs }),
    ...(around.compaction
      ? {
          compaction: {
            strategy: 'summary' as const,
            keep_turns: 0,
            window: 100,
            window_from: 'persona' as const,
            reserve: 20,
            ...around.compaction,
          },
        }
      : {}),
    root: around.root ?? '/',
    ...(around.budgets
      ? { budgets: { limits: around.budgets, thresholds: [...(around.thresholds ?? DEFAULT_THRESHOLDS)] } }
      : {}),
    ...(around.runLimits ? { run_limits: around.runLimits } : {}),
    ...(around.price ? { price: around.price } : {}),
    ...(around.outputRepairs === undefined
      ? {}
      : { output: { schema: { type: 'object' }, repairs: around.outputRepairs } }),
    fingerprints: {
      ...(around.price ? { price: fingerprint(around.price) } : {}),
      persona: fingerprint(around),
      prompt: 'p',
      tools: fingerprint(tools),
      hooks: fingerprint(hooks),
    },
  };
}

/** A hook registration. */
export function hook(point: HookRegistration['point'], id: string = point, more: Partial<HookRegistration> = {}) {
  return HookRegistration.parse({ id, point, ...more });
}

/** The provision succeeds. */
export function provisioned(around: Surroundings = {}): Move {
  return (state) => ({
    type: 'provision_outcome',
    effect_id: open(state.context.provision, 'provision').id,
    status: 'ok',
    provision: provision(around),
  });
}

/** The provision fails, or is aborted. */
export function notProvisioned(status: 'failed' | 'cancelled' = 'failed'): Move {
  return (state) => {
    const head = { type: 'provision_outcome', effect_id: open(state.context.provision, 'provision').id } as const;
    return status === 'cancelled'
      ? { ...head, status }
      : { ...head, status, error: { code: 'mcp_server_failed', message: 'no answer' } };
  };
}

/** The persona of a hand-off is resolved, with these settings. */
export function tookOver(callId: string, around: Surroundings): Move {
  return (state) => ({
    type: 'provision_outcome',
    effect_id: effectOfCall(state, callId),
    status: 'ok',
    provision: provision(around),
  });
}

/** It cannot be resolved, or the resolution is aborted. */
export function notTakenOver(callId: string, status: 'failed' | 'cancelled' = 'failed'): Move {
  return (state) => {
    const head = { type: 'provision_outcome', effect_id: effectOfCall(state, callId) } as const;
    const error = { code: 'persona_not_found', message: 'there is no persona tester; there are: coder' };
    return status === 'cancelled' ? { ...head, status } : { ...head, status, error };
  };
}

function effectOfCall({ context }: SessionState, callId: string): string {
  const row = context.calls.find((candidate) => candidate.call_id === callId);
  if (row?.status !== 'running') throw new Error(`call ${callId} is not running: it is ${row?.status}`);
  return row.effect_id as string;
}

/** A call that hands the session off to another persona. */
export const handoff = (callId: string, to = 'tester', brief = 'test it') =>
  call(callId, 'handoff', { args: { to, brief } });

/** A session that waits for its first model answer. */
export const running = (around: Surroundings = {}): Move => [started(), provisioned(around)];

// ---- the model ----

type CallPart = Extract<AssistantMessage['content'][number], { type: 'call' }>;

/** A call in a model answer. */
export function call(callId: string, toolName: string, more: Partial<CallPart> = {}): CallPart {
  return { type: 'call', call_id: callId, tool: toolName, args: {}, ...more };
}

function modelOutcome(content: AssistantMessage['content'], more: Partial<ModelOutcome>): Move {
  return (state) => ({
    type: 'model_outcome',
    effect_id: open(state.context.model, 'model').id,
    status: 'complete',
    message: { role: 'assistant', content },
    finish_reason: 'stop',
    usage: { input_tokens: 10, output_tokens: 1 },
    body_streamed: true,
    attempts: 1,
    duration_ms: 5,
    ...more,
  });
}

const textParts = (text: string) => (text === '' ? [] : [{ type: 'text' as const, text }]);

/** The model answers without calls. */
export const answered = (text = 'fine') => modelOutcome(textParts(text), {});
/** The model answers, and the host has validated the answer against the output schema. */
export const answeredOutput = (output: NonNullable<ModelOutcome['output']>) =>
  modelOutcome(textParts('value' in output ? JSON.stringify(output.value) : 'no JSON'), { output });
/** An outcome with another usage than the default. */
export function using(inputTokens: number, outputTokens: number, move: Move): Move {
  return (state) => {
    const outcome = (move as (state: SessionState) => ModelOutcome)(state);
    return { ...outcome, usage: { input_tokens: inputTokens, output_tokens: outputTokens } };
  };
}
/** The model answers with calls. */
export const asked = (...calls: readonly CallPart[]) => modelOutcome([...calls], { finish_reason: 'tool_calls' });
/** The model fails, after some text or none. */
export const modelFailed = (text = '', ...calls: readonly CallPart[]) =>
  modelOutcome([...textParts(text), ...calls], {
    status: 'failed',
    error: { code: 'model_unavailable', message: 'gone' },
  });
/** The model has stopped after an abort. */
export const modelStopped = (text = '', ...calls: readonly CallPart[]) =>
  modelOutcome([...textParts(text), ...calls], { status: 'cancelled' });

/** The provider refuses the prompt as too long. */
export const overflowed = (text = '') =>
  modelOutcome(textParts(text), {
    status: 'failed',
    error: { code: 'context_overflow', message: 'too long' },
    usage: { input_tokens: 0, output_tokens: 0 },
  });

/** The model answers, and its provider reports this number of tokens for prompt and answer. */
export const answeredAt = (tokens: number, text = 'fine') =>
  modelOutcome(textParts(text), { usage: { input_tokens: tokens - 1, output_tokens: 1 } });
/** The same for an answer with calls. */
export const askedAt = (tokens: number, ...calls: readonly CallPart[]) =>
  modelOutcome([...calls], { usage: { input_tokens: tokens - 1, output_tokens: 1 }, finish_reason: 'tool_calls' });

/** The model step of a compaction succeeds. */
export function compacted(text = 'what was', more: Partial<CompactOutcome> = {}): Move {
  return (state) => ({
    type: 'compact_outcome',
    effect_id: open(state.context.compacting, 'compact').id,
    status: 'complete',
    text,
    usage: { input_tokens: 7, output_tokens: 3 },
    attempts: 1,
    duration_ms: 4,
    ...more,
  });
}

/** The model step of a compaction fails. */
export const notCompacted = (status: 'failed' | 'cancelled' = 'failed') =>
  compacted('', { status, ...(status === 'failed' ? { error: { code: 'model_unavailable', message: 'gone' } } : {}) });

// ---- tools ----

/** A call ends. */
export function returned(callId: string, status: CallOutcome['status'] = 'ok', more: Partial<CallOutcome> = {}): Move {
  // The host itself, not the tool, reports an unknown outcome.
  const text = status === 'interrupted' ? `nobody knows of ${callId}` : `result of ${callId}`;
  return (state) => {
    const row = state.context.calls.find((candidate) => candidate.call_id === callId);
    if (row?.status !== 'running') throw new Error(`call ${callId} is not running: it is ${row?.status}`);
    return {
      type: 'call_outcome',
      effect_id: row.effect_id as string,
      call_id: callId,
      status,
      result: { content: [{ type: 'text', text }], is_error: status !== 'ok' },
      duration_ms: 3,
      ...more,
    };
  };
}

/** A worker accepts a call. */
export function accepted(callId: string): Move {
  return (state) => {
    const row = state.context.calls.find((candidate) => candidate.call_id === callId);
    if (row?.status !== 'running') throw new Error(`call ${callId} is not running: it is ${row?.status}`);
    const { epoch } = state.context;
    return { type: 'call_accepted', effect_id: row.effect_id as string, call_id: callId, epoch };
  };
}

/** The outcome of a call arrives as a command. */
export function broughtBack(callId: string, id = `back-${callId}`, more: JsonObject = {}): Move {
  return (state) => {
    const row = state.context.calls.find((candidate) => candidate.call_id === callId);
    const result = { content: [{ type: 'text', text: `brought back of ${callId}` }], is_error: false };
    const head = { call_id: callId, effect_id: row?.effect_id ?? '1-0', epoch: row?.accepted ?? state.context.epoch };
    const parsed = parseCallOutcome(Buffer.from(JSON.stringify({ ...head, status: 'ok', result, ...more })));
    if (!parsed.ok) throw new Error(parsed.problem.message);
    return { type: 'command', verb: 'call_outcome', command_id: id, body: parsed.body };
  };
}

/** Tool connections are closed. */
export const toolsClosed: Move = (state) => ({
  type: 'close_outcome',
  effect_id: open(state.context.closing, 'close_tools').id,
  notes: [],
});

// ---- hooks ----

/** A registration without a verdict. */
export class Failing {
  readonly failure: HookFailure;
  constructor(code: HookFailure['code'] = 'hook_timeout') {
    this.failure = { code, message: code };
  }
}

/** The open consult ends: the return value of each registration in order, or its failure. */
export function hooksSaid(...returns: readonly unknown[]): Move {
  return (state) => {
    const { effect_id, point, hooks, payload } = open(state.context.consult, 'consult');
    const batch = Array.isArray(payload.calls) ? payload.calls.length : undefined;
    return {
      type: 'consult_outcome',
      effect_id,
      status: 'answered',
      answers: hooks.map((id, index): HookAnswer => {
        const raw = returns[index];
        if (index >= returns.length) return { hook: id, not_run: true };
        if (raw instanceof Failing) return { hook: id, failure: raw.failure };
        const parsed = parseReturn(point, raw, batch);
        const said = raw === undefined ? {} : { raw: raw as HookAnswer['raw'] };
        if (isHookFailure(parsed)) return { hook: id, ...said, failure: parsed };
        const reminders = parsed.reminders.length > 0 ? { reminders: [...parsed.reminders] } : {};
        return { hook: id, ...said, verdict: parsed.verdict, ...reminders };
      }),
    };
  };
}

/** Every registration rewrote the arguments, and the result does not fit the tool's schema. */
export function hooksRewroteUnfit(args: JsonObject): Move {
  return (state) => {
    const { effect_id, hooks } = open(state.context.consult, 'consult');
    return {
      type: 'consult_outcome',
      effect_id,
      status: 'answered',
      answers: hooks.map((id): HookAnswer => ({ hook: id, verdict: { kind: 'rewrite_args', args } })),
      args_problem: { code: 'invalid_call_arguments', message: 'They do not fit.' },
    };
  };
}

/** The open consult was aborted before any answer. */
export const hooksCancelled: Move = (state) => ({
  type: 'consult_outcome',
  effect_id: open(state.context.consult, 'consult').effect_id,
  status: 'cancelled',
  answers: [],
});

// ---- timers ----

/** The timer that the session waits for is due. */
export const timerFires: Move = (state) => {
  const { id, dueAtMs } = open(sessionTimer(state), 'timer');
  return { type: 'timer', effect_id: id, due_at_ms: dueAtMs };
};

/** The approval of a call expires. */
export const approvalExpires =
  (callId: string): Move =>
  (state) => {
    const expiry = open(state.context.calls.find(({ call_id }) => call_id === callId)?.expiry ?? null, 'expiry');
    return { type: 'timer', effect_id: expiry.id, due_at_ms: expiry.due_at_ms };
  };

/** The notification of an approval was sent, or failed. */
export const noticeGiven =
  (callId: string, status: 'delivered' | 'failed' = 'delivered'): Move =>
  (state) => {
    const notice = open(state.context.calls.find(({ call_id }) => call_id === callId)?.notice ?? null, 'notice');
    const error = status === 'failed' ? { error: { code: 'notice_failed' as const, message: 'it answered 500' } } : {};
    return { type: 'notice_outcome', effect_id: notice.id, status, attempts: 1, ...error };
  };

// ---- hosts ----

export const owned = (epoch: number): Input => ({ type: 'owned', epoch, host: `host-${epoch}` });
/** The first record of a fork: its origin's start, and the origin. */
export const forked = (id = 'start-1', origin: Partial<CopyOrigin> = {}): CommandInput => ({
  ...started({}, id),
  copied_from: { how: 'fork', session: 's0', n: 3, hash: '0'.repeat(64), command_id: `fork-${id}`, ...origin },
});
/** A fork's first owner claims it after its copied part. */
export const takenOver =
  (after: Omit<AfterCopy, 'session'> = {}): Move =>
  (state) => ({
    type: 'owned',
    epoch: state.context.epoch + 1,
    host: 'first',
    after_copy: { session: state.context.session_id, ...after },
  });
/** The environment gives feedback: this number of pieces, and this number that the host dropped. */
export const fedBack = (count = 1, dropped = 0, source = 'tool:read'): Input => ({
  type: 'feedback',
  items: Array.from({ length: count }, (_, index) => ({ source, body: `notice ${index + 1}` })),
  ...(dropped > 0 ? { dropped: { count: dropped, source } } : {}),
});
/** The host's table of hooks changes. */
export const hooksChanged = (table: HookTable): Move => ({
  type: 'hooks_changed',
  fingerprint: fingerprint(JSON.stringify(table)),
  table,
});

/** A report on the progress of a job that a hook started. */
export const jobReported = (
  jobId: string,
  status: JobReceipt['status'] = 'succeeded',
  id = `report-${jobId}-${status}`,
): CommandInput => {
  const parsed = parseFeedback(new TextEncoder().encode(JSON.stringify({ job: { job_id: jobId, status } })));
  if (!parsed.ok) throw new Error(parsed.problem.message);
  return { type: 'command', verb: 'feedback', command_id: id, body: parsed.body };
};

export const sessionFailed: Move = (state) => ({
  type: 'session_failed',
  error: { code: 'session_failed', message: 'an invariant broke' },
  n: state.context.n,
});

function open<T>(effect: T | null, what: string): T {
  if (effect === null) throw new Error(`no ${what} effect is open`);
  return effect;
}

// ---- stop conditions ----

/** The called predicates answer in order: true, false, or a failure. */
export function predicatesSaid(...said: readonly (boolean | string)[]): Move {
  return (state) => {
    const { id, predicates } = open(state.context.stop_check, 'check_stop');
    const answers = said.map((one, index): StopAnswer => {
      const predicate = predicates[index] as string;
      return typeof one === 'boolean'
        ? { predicate, holds: one }
        : { predicate, holds: false, failure: { code: 'predicate_failed', message: one } };
    });
    return { type: 'stop_outcome', effect_id: id, status: 'checked', answers };
  };
}

/** The call of the predicates was aborted. */
export const predicatesStopped: Move = (state) => ({
  type: 'stop_outcome',
  effect_id: open(state.context.stop_check, 'check_stop').id,
  status: 'cancelled',
  answers: [],
});
