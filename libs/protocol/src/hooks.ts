/** Hook points, the table of registrations that a session sees, and the one parser of what handlers return. */
import { z } from 'zod';
import { BOUNDS } from './bounds.ts';
import { ID_PATTERN } from './ids.ts';
import { Json, JsonObject } from './json.ts';
import { Message } from './messages.ts';
import { Glob } from './patterns.ts';

/** The points at which the turn machine consults hooks, in the spelling of the journal. */
export const HOOK_POINTS = [
  'session_start',
  'user_prompt_submit',
  'pre_compact',
  'post_compact',
  'transform_context',
  'PreToolUse',
  'gate_tool_calls',
  'permission_asked',
  'PostToolUse',
  'post_turn',
  'file_edited',
  'session_idle',
  'pre_suspend',
  'post_resume',
  'session_error',
  'session_end',
  'pre_finish',
  'on_unsettled_detected',
  'post_finish',
] as const;
/** One hook point. */
export const HookPoint = z.enum(HOOK_POINTS);
/** See {@link HookPoint}. */
export type HookPoint = z.infer<typeof HookPoint>;

/** One registration: who answers at which point, in which order, and what a failure means. */
export const HookRegistration = z.strictObject({
  id: z.string().regex(ID_PATTERN),
  point: HookPoint,
  /** Glob on the point's natural target: a tool's name at tool points, the persona's elsewhere. */
  pattern: Glob.default('*'),
  /** Low first. */
  priority: z.number().int().min(-1_000).max(1_000).default(0),
  timeout_ms: z.number().int().min(1).max(600_000).default(5_000),
  on_error: z.enum(['fail_closed', 'fail_open']).default('fail_closed'),
});
/** See {@link HookRegistration}. */
export type HookRegistration = z.infer<typeof HookRegistration>;

/** The registrations of a session, in the order in which they are asked. */
export const HookTable = z.array(HookRegistration).max(BOUNDS.hooksMax);
/** See {@link HookTable}. */
export type HookTable = z.infer<typeof HookTable>;

/** What a handler's return means, after parsing. */
export const Verdict = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('no_objection') }),
  z.strictObject({ kind: z.literal('block'), reason: z.string().optional() }),
  z.strictObject({
    kind: z.literal('decision'),
    decision: z.enum(['allow', 'deny', 'ask']),
    reason: z.string().optional(),
  }),
  z.strictObject({ kind: z.literal('deny'), reason: z.string() }),
  z.strictObject({ kind: z.literal('rewrite_args'), args: JsonObject }),
  z.strictObject({
    kind: z.literal('rewrite_result'),
    result: z.string().optional(),
    is_error: z.boolean().optional(),
  }),
  z.strictObject({
    kind: z.literal('replace_messages'),
    /** What the request shows: messages of the view by their place in it, or others in full. */
    messages: z.array(z.union([z.number().int().nonnegative(), Message])),
  }),
  z.strictObject({
    kind: z.literal('gate'),
    calls: z.array(z.union([z.strictObject({ allow: z.boolean(), reason: z.string().optional() }), z.null()])),
  }),
]);
/** See {@link Verdict}. */
export type Verdict = z.infer<typeof Verdict>;

/** Why a consult of one registration gave no verdict. */
export const HookFailure = z.strictObject({
  code: z.enum(['hook_threw', 'hook_timeout', 'hook_unavailable', 'verdict_invalid', 'verdict_not_allowed']),
  message: z.string(),
});
/** See {@link HookFailure}. */
export type HookFailure = z.infer<typeof HookFailure>;

/** One registration's part in a consult. */
export const HookAnswer = z.strictObject({
  hook: z.string(),
  /** What the handler returned, as it came. */
  raw: Json.optional(),
  verdict: Verdict.optional(),
  failure: HookFailure.optional(),
  /** An earlier veto ended the chain before this registration was asked. */
  not_run: z.literal(true).optional(),
  /** The payload as this handler saw it, where an earlier rewrite had changed it. */
  payload: Json.optional(),
});
/** See {@link HookAnswer}. */
export type HookAnswer = z.infer<typeof HookAnswer>;

/** The points at which a hook may say no to what is about to happen. */
const BLOCKABLE: readonly HookPoint[] = ['user_prompt_submit', 'pre_compact', 'pre_suspend'];

const RETURNS: ReadonlyArray<{
  readonly schema: z.ZodType<Verdict, unknown>;
  readonly keys: readonly string[];
  readonly points: readonly HookPoint[];
}> = [
  {
    keys: ['block', 'reason'],
    points: BLOCKABLE,
    schema: z
      .strictObject({ block: z.literal(true), reason: z.string().optional() })
      .transform(({ reason }): Verdict => ({ kind: 'block', ...(reason === undefined ? {} : { reason }) })),
  },
  {
    keys: ['decision', 'reason'],
    points: ['permission_asked'],
    schema: z.strictObject({ decision: z.enum(['allow', 'deny', 'ask']), reason: z.string().optional() }).transform(
      ({ decision, reason }): Verdict => ({
        kind: 'decision',
        decision,
        ...(reason === undefined ? {} : { reason }),
      }),
    ),
  },
  {
    keys: ['deny'],
    points: ['PreToolUse'],
    schema: z.strictObject({ deny: z.string() }).transform(({ deny }): Verdict => ({ kind: 'deny', reason: deny })),
  },
  {
    keys: ['args'],
    points: ['PreToolUse'],
    schema: z.strictObject({ args: JsonObject }).transform(({ args }): Verdict => ({ kind: 'rewrite_args', args })),
  },
  {
    keys: ['messages'],
    points: ['transform_context'],
    schema: z
      .strictObject({ messages: z.array(Message).min(1) })
      .transform(({ messages }): Verdict => ({ kind: 'replace_messages', messages })),
  },
  {
    keys: ['result', 'is_error'],
    points: ['PostToolUse'],
    schema: z.strictObject({ result: z.string().optional(), is_error: z.boolean().optional() }).transform(
      ({ result, is_error }): Verdict => ({
        kind: 'rewrite_result',
        ...(result === undefined ? {} : { result }),
        ...(is_error === undefined ? {} : { is_error }),
      }),
    ),
  },
];

/**
 * The one verdict parser. Nothing and `true` are no objection everywhere but at `gate_tool_calls`, where silence
 * denies; anything that is not a known return, a misspelt key included, and any return where it has no meaning,
 * is a failure that names key and point.
 */
export function parseVerdict(point: HookPoint, raw: unknown): Verdict | HookFailure {
  if (point === 'gate_tool_calls') return parseGate(raw);
  if (raw === undefined || raw === null || raw === true) return { kind: 'no_objection' };
  if (raw === false) {
    return BLOCKABLE.includes(point) ? { kind: 'block' } : notAllowed(point, 'false', BLOCKABLE);
  }
  if (typeof raw === 'string') {
    return point === 'PostToolUse'
      ? { kind: 'rewrite_result', result: raw }
      : notAllowed(point, 'a string', ['PostToolUse']);
  }
  if (typeof raw !== 'object' || Array.isArray(raw)) {
    return invalid(point, `a ${Array.isArray(raw) ? 'list' : typeof raw} is not a verdict`);
  }
  const keys = Object.keys(raw);
  const row = RETURNS.find(
    (candidate) => keys.length > 0 && keys.some((key) => candidate.keys.includes(key) && key !== 'reason'),
  );
  if (!row)
    return invalid(
      point,
      `no verdict has ${keys.length === 0 ? 'no keys' : `the key ${keys.map((key) => `"${key}"`).join(', ')}`}`,
    );
  const unknown = keys.filter((key) => !row.keys.includes(key));
  if (unknown.length > 0)
    return invalid(point, `unknown key ${unknown.map((key) => `"${key}"`).join(', ')} beside "${row.keys[0]}"`);
  if (!row.points.includes(point)) return notAllowed(point, `"${row.keys[0]}"`, row.points);
  const parsed = row.schema.safeParse(raw);
  return parsed.success ? parsed.data : invalid(point, z.prettifyError(parsed.error));
}

/** Whether a parsed return is a failure rather than a verdict. */
export function isHookFailure(parsed: Verdict | HookFailure): parsed is HookFailure {
  return 'code' in parsed;
}

const GateAnswer = z.strictObject({ allow: z.boolean(), reason: z.string().optional() });

// A malformed member denies its own call only, so each is parsed by itself; null stands for it.
function parseGate(raw: unknown): Verdict | HookFailure {
  if (!Array.isArray(raw)) return invalid('gate_tool_calls', 'a list with one {allow, reason?} per call is needed');
  return {
    kind: 'gate',
    calls: raw.slice(0, BOUNDS.callsPerBatchMax).map((member) => {
      const parsed = GateAnswer.safeParse(member);
      if (!parsed.success) return null;
      return { allow: parsed.data.allow, ...(parsed.data.reason === undefined ? {} : { reason: parsed.data.reason }) };
    }),
  };
}

function invalid(point: HookPoint, message: string): HookFailure {
  return { code: 'verdict_invalid', message: `${point}: ${message}` };
}

function notAllowed(point: HookPoint, what: string, where: readonly HookPoint[]): HookFailure {
  return { code: 'verdict_not_allowed', message: `${point}: ${what} is not allowed here, only at ${where.join(', ')}` };
}
