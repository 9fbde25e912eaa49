/**
 * Helper functions for return values of handlers: `allow()`, `deny()`, `ask()`, `rewrite()`, `remind()` and
 * `startJob()`.
 *
 * Invariant: the answer of a helper never leaves the process that runs the handler. {@link toPlainReturn} replaces it
 * by the plain value of its point. The form differs between points: a refusal is `{block}`, `{deny}`, `{decision}` or,
 * for each call at the gate, `{allow: false}`.
 */
import type { HookPoint } from './hook-points.ts';
import { HOOK_RETURNS } from './hook-returns.ts';
import type { JobSettings } from './job-receipts.ts';
import type { HookReminderInput } from './verdicts.ts';

/**
 * Marks the answer of a helper. Registered globally, because a module of handlers may contain another copy of this
 * package.
 */
export const HOOK_ANSWER: unique symbol = Symbol.for('coxswain.hook_answer');

/** The answer of {@link allow}. */
export interface AllowAnswer {
  readonly [HOOK_ANSWER]: 'allow';
}

/** The answer of {@link deny}. */
export interface DenyAnswer {
  readonly [HOOK_ANSWER]: 'deny';
  readonly reason: string;
}

/** The answer of {@link ask}. */
export interface AskAnswer {
  readonly [HOOK_ANSWER]: 'ask';
  readonly reason: string | undefined;
}

/** The answer of {@link rewrite}. */
export interface RewriteAnswer<Value> {
  readonly [HOOK_ANSWER]: 'rewrite';
  readonly value: Value;
}

/** The answer of {@link remind}. */
export interface RemindAnswer<Inner> {
  readonly [HOOK_ANSWER]: 'remind';
  readonly text: string;
  readonly options: HookRemindOptions;
  /** The answer next to the reminder; undefined: no objection. */
  readonly answer: Inner;
}

/** The answer of {@link startJob}. */
export interface JobAnswer {
  readonly [HOOK_ANSWER]: 'job';
  readonly job: JobSettings;
}

/** The settings of a reminder. All are optional. */
export interface HookRemindOptions {
  /** Labels by which interfaces and hooks may sort reminders. */
  readonly tags?: readonly string[];
  /** Of several reminders with the same key, models see the newest. */
  readonly dedupeKey?: string;
  /** Number of turns that show it; default: all. A compaction counts as a turn. */
  readonly ttlTurns?: number;
  /** Whether it survives a compaction of the messages around it; default false. */
  readonly preserveOnCompact?: boolean;
  /** Which descendants inherit it: direct children (`session`, the default), `all` or `none`. */
  readonly propagate?: NonNullable<HookReminderInput['propagate']>;
  /** The role in which a model reads it; default `system`. */
  readonly roleHint?: NonNullable<HookReminderInput['role_hint']>;
  /** Whether it is only recorded and no model reads it; default false. */
  readonly auditOnly?: boolean;
}

/**
 * Allows the operation. At `permission_asked` it answers the question without a person. At `gate_tool_calls` it allows
 * the call at its position, or all calls of the batch. At the other points that can refuse, except
 * `OnApprovalRequested`, it means no objection, and the other rules still apply. Elsewhere it is invalid.
 */
export function allow(): AllowAnswer {
  return Object.freeze<AllowAnswer>({ [HOOK_ANSWER]: 'allow' });
}

/**
 * Refuses the operation, at every point that can refuse one. At `gate_tool_calls` it refuses the call at its position,
 * or all calls of the batch.
 * @param reason recorded, and shown to people; for a tool call also read by the model. At most 2 KiB.
 */
export function deny(reason: string): DenyAnswer {
  return Object.freeze<DenyAnswer>({ [HOOK_ANSWER]: 'deny', reason });
}

/** Leaves the decision to a person, at `permission_asked`. @param reason shown to the person. At most 2 KiB. */
export function ask(reason?: string): AskAnswer {
  return Object.freeze<AskAnswer>({ [HOOK_ANSWER]: 'ask', reason });
}

/**
 * Replaces the value of the point: the arguments at `PreToolUse` and `PreStep`, the result at `PostToolUse` (a text, or
 * `{ result?, isError? }`), the output at `PostStep`, the messages at `transform_context`.
 */
export function rewrite<Value>(value: Value): RewriteAnswer<Value> {
  return Object.freeze<RewriteAnswer<Value>>({ [HOOK_ANSWER]: 'rewrite', value });
}

/**
 * Adds a reminder for the model. Without `answer` there is no objection, except at `gate_tool_calls`: a gate without an
 * answer refuses the batch. At points of a session, a list of reminders is also valid.
 * @param options.answer the answer next to the reminder, for example `deny('read the reminder first')`.
 */
export function remind(text: string, options?: HookRemindOptions): RemindAnswer<undefined>;
export function remind<Inner>(
  text: string,
  options: HookRemindOptions & { readonly answer: Inner },
): RemindAnswer<Inner>;
export function remind(
  text: string,
  options: HookRemindOptions & { readonly answer?: unknown } = {},
): RemindAnswer<unknown> {
  return Object.freeze<RemindAnswer<unknown>>({ [HOOK_ANSWER]: 'remind', text, options, answer: options.answer });
}

/**
 * Reports that a job continues after the answer, at points whose hooks neither refuse nor rewrite (`AdvisoryPoint`).
 * `session.reportJob()` reports its end, which the model gets as feedback.
 */
export function startJob(job: JobSettings): JobAnswer {
  return Object.freeze<JobAnswer>({ [HOOK_ANSWER]: 'job', job });
}

type HelperAnswer = AllowAnswer | DenyAnswer | AskAnswer | RewriteAnswer<unknown> | RemindAnswer<unknown> | JobAnswer;

/** Maximum of nested answers that are replaced. The parser accepts fewer. */
const INNER_ANSWERS_MAX = 16;

/**
 * Converts the return value of a handler to the plain value of its point, with members in camelCase. A value without
 * helper answers is returned unchanged. An answer that is invalid at the point becomes an object that the parser
 * rejects.
 * @param calls at `gate_tool_calls`: the number of calls in the batch.
 */
export function toPlainReturn(point: HookPoint, returned: unknown, calls: number): unknown {
  try {
    return plainOf(point, returned, calls, 0);
  } catch {
    // A later check reads the whole value and reports an exception of a getter.
    return returned;
  }
}

function plainOf(point: HookPoint, returned: unknown, calls: number, depth: number): unknown {
  if (typeof returned !== 'object' || returned === null || depth > INNER_ANSWERS_MAX) return returned;
  if (isHelperAnswer(returned)) return spelled(point, returned, calls, depth);
  if (Array.isArray(returned))
    return returned.some(isHelperAnswer) ? returned.map((member) => memberOf(point, member)) : returned;
  const { reminder, then: inner } = returned as { readonly reminder?: unknown; readonly then?: unknown };
  if (reminder === undefined || inner === undefined) return returned;
  const plain = plainOf(point, inner, calls, depth + 1);
  return plain === inner ? returned : { ...returned, ...thenAnswer(plain) };
}

function isHelperAnswer(value: unknown): value is HelperAnswer {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, HOOK_ANSWER);
}

const takes = (form: keyof typeof HOOK_RETURNS, point: HookPoint): boolean =>
  (HOOK_RETURNS[form].points as readonly HookPoint[]).includes(point);

function spelled(point: HookPoint, answer: HelperAnswer, calls: number, depth: number): unknown {
  switch (answer[HOOK_ANSWER]) {
    case 'allow':
      if (takes('gate', point)) return Array.from({ length: calls }, () => ({ allow: true }));
      // At OnApprovalRequested it would look like an approval by a person.
      if (takes('veto', point) || (takes('deny', point) && point !== 'OnApprovalRequested')) return true;
      return { decision: 'allow' };
    case 'deny':
      if (takes('gate', point)) return Array.from({ length: calls }, () => ({ allow: false, reason: answer.reason }));
      if (takes('veto', point)) return { block: true, reason: answer.reason };
      return takes('decision', point) ? { decision: 'deny', reason: answer.reason } : { deny: answer.reason };
    case 'ask':
      return { decision: 'ask', ...(answer.reason === undefined ? {} : { reason: answer.reason }) };
    case 'rewrite':
      if (takes('result', point)) return isResult(answer.value) ? answer.value : { result: answer.value ?? null };
      if (takes('output', point)) return { output: answer.value };
      return takes('messages', point) ? { messages: answer.value } : { args: answer.value };
    case 'job':
      return { job: jobOf(answer.job) };
    case 'remind': {
      const reminder = reminderOf(answer);
      if (answer.answer === undefined) return reminder;
      return { reminder, ...thenAnswer(plainOf(point, answer.answer, calls, depth + 1)) };
    }
  }
}

// An unknown setting keeps its name, so that the parser rejects it.
function reminderOf({ text, options }: RemindAnswer<unknown>): Readonly<Record<string, unknown>> {
  const { auditOnly, answer: _, ...settings } = options as HookRemindOptions & { readonly answer?: unknown };
  const given = Object.entries(settings).filter(([, value]) => value !== undefined);
  return {
    body: text,
    ...(auditOnly === true ? { mode: 'audit_only' } : {}),
    ...Object.fromEntries(given),
  };
}

// The schema of receipts rejects a value that is not an object.
function jobOf(job: JobSettings): unknown {
  return typeof job === 'object' && job !== null ? { ...job, status: job.status ?? 'queued' } : job;
}

// `is_error` counts too: `toWire` (casing.ts) then reports the wrong name. Any other value becomes the member `result`,
// where the parser accepts only a text. Otherwise `rewrite(true)` would mean no objection.
function isResult(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ['result', 'isError', 'is_error'].some((key) => key in value);
}

// A member of a list: at the gate the verdict of one call, elsewhere a reminder.
function memberOf(point: HookPoint, member: unknown): unknown {
  if (!isHelperAnswer(member)) return member;
  const [verdict] = [spelled(point, member, 1, 0)].flat();
  return verdict;
}

// Not a literal: a linter mistakes an object with `then` for a promise.
const thenAnswer = (answer: unknown): Readonly<Record<string, unknown>> => Object.fromEntries([['then', answer]]);
