/**
 * The parser of return values of handlers, for all surfaces. An invalid value, or one without a meaning at its point,
 * is a failure whose message names the point and the problem.
 */
import * as z from 'zod';
import { Message } from '../journal/messages.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { listOf } from '../wire/containers.ts';
import { Json, JsonObject, Reason } from '../wire/json.ts';
import { IN_PLAIN_WORDS } from '../wire/schema-problems.ts';
import type { HookPoint } from './hook-points.ts';
import { HOOK_RETURNS } from './hook-returns.ts';
import { JobReceipt } from './job-receipts.ts';
import { type HookFailure, HookReminder, type HookReturn, type Verdict } from './verdicts.ts';

interface KeyedReturn {
  readonly schema: z.ZodType<Verdict, unknown>;
  readonly keys: readonly string[];
  readonly points: readonly HookPoint[];
}

const reasoned = (reason: string | undefined) => (reason === undefined ? {} : { reason });

/** The returns that are objects. Their keys apart from `reason` distinguish them. */
const KEYED: readonly KeyedReturn[] = [
  {
    keys: ['block', 'reason'],
    points: HOOK_RETURNS.veto.points,
    schema: z
      .strictObject({ block: z.literal(true), reason: Reason.optional() })
      .transform(({ reason }): Verdict => ({ kind: 'block', ...reasoned(reason) })),
  },
  {
    keys: ['decision', 'reason'],
    points: HOOK_RETURNS.decision.points,
    schema: z
      .strictObject({ decision: z.enum(['allow', 'deny', 'ask']), reason: Reason.optional() })
      .transform(({ decision, reason }): Verdict => ({ kind: 'decision', decision, ...reasoned(reason) })),
  },
  {
    keys: ['deny'],
    points: HOOK_RETURNS.deny.points,
    schema: z.strictObject({ deny: Reason }).transform(({ deny }): Verdict => ({ kind: 'deny', reason: deny })),
  },
  {
    keys: ['args'],
    points: HOOK_RETURNS.args.points,
    schema: z.strictObject({ args: JsonObject }).transform(({ args }): Verdict => ({ kind: 'rewrite_args', args })),
  },
  {
    keys: ['messages'],
    points: HOOK_RETURNS.messages.points,
    schema: z
      .strictObject({ messages: listOf(Message).min(1) })
      .transform(({ messages }): Verdict => ({ kind: 'replace_messages', messages })),
  },
  {
    keys: ['result', 'is_error'],
    points: HOOK_RETURNS.result.points,
    schema: z.strictObject({ result: z.string().optional(), is_error: z.boolean().optional() }).transform(
      ({ result, is_error }): Verdict => ({
        kind: 'rewrite_result',
        ...(result === undefined ? {} : { result }),
        ...(is_error === undefined ? {} : { is_error }),
      }),
    ),
  },
  {
    keys: ['output'],
    points: HOOK_RETURNS.output.points,
    schema: z.strictObject({ output: Json }).transform(({ output }): Verdict => ({ kind: 'rewrite_output', output })),
  },
  {
    keys: ['job'],
    points: HOOK_RETURNS.job.points,
    schema: z.strictObject({ job: JobReceipt }).transform(({ job }): Verdict => ({ kind: 'job', receipt: job })),
  },
];

/** Maximum depth of answers within reminders: no handler needs more. */
const INNER_ANSWERS_MAX = 8;
const PROTOTYPE_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/**
 * Parses the return value of a handler. Never throws for JSON values.
 * @param calls at the gate: the number of calls in the batch. A list of another length is a failure, because the
 *   assignment of verdicts to calls is unclear.
 */
export function parseReturn(point: HookPoint, raw: unknown, calls?: number): HookReturn | HookFailure {
  const refused = hostileKey(raw);
  if (refused !== null) return invalid(point, refused);
  return read(point, raw, calls, 0);
}

/** Whether a parsed return is a failure rather than an answer. */
export function isHookFailure(parsed: HookReturn | HookFailure): parsed is HookFailure {
  return 'code' in parsed;
}

function read(point: HookPoint, raw: unknown, calls: number | undefined, depth: number): HookReturn | HookFailure {
  if (raw === undefined || raw === null || raw === true) return plain(silence(point));
  if (raw === false)
    return takes('veto', point) ? plain({ kind: 'block' }) : notAllowed(point, 'false', HOOK_RETURNS.veto.points);
  if (typeof raw === 'string') {
    return takes('result', point)
      ? plain({ kind: 'rewrite_result', result: raw })
      : notAllowed(point, 'a string', HOOK_RETURNS.result.points);
  }
  if (Array.isArray(raw)) return readList(point, raw, calls);
  if (typeof raw !== 'object') return invalid(point, `a ${typeof raw} is not a verdict`);
  if (Object.hasOwn(raw, 'reminder')) return readReminder(point, raw as Record<string, unknown>, calls, depth);
  if (Object.hasOwn(raw, 'body')) {
    const reminder = HookReminder.safeParse(raw, IN_PLAIN_WORDS);
    return reminder.success ? withReminders([reminder.data], silence(point)) : invalidAt(point, reminder.error);
  }
  return readKeyed(point, raw);
}

// No return value means no objection, except at a gate, where it means refusal.
function silence(point: HookPoint): Verdict {
  return takes('gate', point) ? { kind: 'gate', calls: [] } : { kind: 'no_objection' };
}

function takes(form: keyof typeof HOOK_RETURNS, point: HookPoint): boolean {
  return (HOOK_RETURNS[form].points as readonly HookPoint[]).includes(point);
}

function readKeyed(point: HookPoint, raw: object): HookReturn | HookFailure {
  const keys = Object.keys(raw);
  const row = KEYED.find((candidate) => keys.some((key) => candidate.keys.includes(key) && key !== 'reason'));
  if (!row)
    return invalid(
      point,
      keys.length === 0
        ? 'an object without keys is not a verdict'
        : `no answer has the key ${keys.map(quoted).join(', ')}`,
    );
  const unknown = keys.filter((key) => !row.keys.includes(key));
  if (unknown.length > 0)
    return invalid(point, `unknown key ${unknown.map(quoted).join(', ')} next to "${row.keys[0]}"`);
  if (!row.points.includes(point)) return notAllowed(point, `"${row.keys[0]}"`, row.points);
  const parsed = row.schema.safeParse(raw, IN_PLAIN_WORDS);
  return parsed.success ? plain(parsed.data) : invalidAt(point, parsed.error);
}

function readReminder(
  point: HookPoint,
  raw: Record<string, unknown>,
  calls: number | undefined,
  depth: number,
): HookReturn | HookFailure {
  const unknown = Object.keys(raw).filter((key) => key !== 'reminder' && key !== 'then');
  if (unknown.length > 0) return invalid(point, `unknown key ${unknown.map(quoted).join(', ')} next to "reminder"`);
  const reminder = HookReminder.safeParse(raw.reminder, IN_PLAIN_WORDS);
  if (!reminder.success) return invalidAt(point, reminder.error, 'reminder');
  if (depth >= INNER_ANSWERS_MAX) return invalid(point, `then: at most ${INNER_ANSWERS_MAX} nested verdicts`);
  const inner = read(point, raw.then, calls, depth + 1);
  return isHookFailure(inner) ? inner : withReminders([reminder.data, ...inner.reminders], inner.verdict);
}

function readList(point: HookPoint, raw: readonly unknown[], calls: number | undefined): HookReturn | HookFailure {
  const isReminder = (member: unknown) =>
    typeof member === 'object' &&
    member !== null &&
    (Object.hasOwn(member, 'reminder') || Object.hasOwn(member, 'body'));
  const isGateAnswer = (member: unknown) =>
    typeof member === 'object' && member !== null && Object.hasOwn(member, 'allow');
  const reminds = raw.length > 0 && raw.every(isReminder);
  if (takes('gate', point) && !reminds) return readGate(point, raw, calls);
  if (!takes('reminders', point)) {
    if (raw.length > 0 && raw.every(isGateAnswer))
      return notAllowed(point, 'a list of "allow"', HOOK_RETURNS.gate.points);
    if (reminds) return notAllowed(point, 'a list of reminders', HOOK_RETURNS.reminders.points);
    return invalid(point, 'a list is not a verdict');
  }
  if (raw.some(isGateAnswer)) return notAllowed(point, 'a list of "allow"', HOOK_RETURNS.gate.points);
  return listOfReminders(point, raw);
}

function listOfReminders(point: HookPoint, raw: readonly unknown[]): HookReturn | HookFailure {
  if (raw.length > BOUNDS.remindersPerReturnMax)
    return invalid(point, `${raw.length} reminders in one return; the limit is ${BOUNDS.remindersPerReturnMax}`);
  const reminders: HookReminder[] = [];
  for (const [index, member] of raw.entries()) {
    const isWrapped = typeof member === 'object' && member !== null && Object.hasOwn(member, 'reminder');
    const parsed = (isWrapped ? WrappedReminder : HookReminder).safeParse(member, IN_PLAIN_WORDS);
    if (!parsed.success) return invalidAt(point, parsed.error, `[${index}]`);
    reminders.push('reminder' in parsed.data ? parsed.data.reminder : parsed.data);
  }
  return withReminders(reminders, silence(point));
}

const WrappedReminder = z.strictObject({ reminder: HookReminder });
const GateAnswer = z.strictObject({ allow: z.boolean(), reason: Reason.optional() });

// A malformed member denies only its own call, so each member is parsed separately. Its error takes its place in the
// list.
function readGate(point: HookPoint, raw: readonly unknown[], calls: number | undefined): HookReturn | HookFailure {
  if (calls !== undefined && raw.length !== calls)
    return invalid(point, `${counted(raw.length, 'verdict')} for a batch of ${counted(calls, 'call')}`);
  return plain({
    kind: 'gate',
    calls: raw.slice(0, BOUNDS.callsPerBatchMax).map((member, index) => {
      const parsed = GateAnswer.safeParse(member, IN_PLAIN_WORDS);
      if (!parsed.success) return { invalid: invalidAt(point, parsed.error, `[${index}]`).message };
      return { allow: parsed.data.allow, ...reasoned(parsed.data.reason) };
    }),
  });
}

const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;

function plain(verdict: Verdict): HookReturn {
  return { verdict, reminders: [] };
}

/** Of reminders with the same key the last remains, at the position of the first. */
function withReminders(reminders: readonly HookReminder[], verdict: Verdict): HookReturn {
  const kept: HookReminder[] = [];
  for (const reminder of reminders) {
    const { dedupe_key: key } = reminder;
    const place = key === undefined ? -1 : kept.findIndex((one) => one.dedupe_key === key);
    if (place < 0) kept.push(reminder);
    else kept[place] = reminder;
  }
  return { verdict, reminders: kept };
}

// `__proto__` and similar keys are dangerous when an object is copied, so they are rejected at any depth.
function hostileKey(root: unknown): string | null {
  const open: [value: unknown, depth: number][] = [[root, 0]];
  for (let next = open.pop(); next; next = open.pop()) {
    const [value, depth] = next;
    if (typeof value !== 'object' || value === null) continue;
    if (depth >= BOUNDS.jsonDepthMax) return `it is nested more than ${BOUNDS.jsonDepthMax} deep`;
    if (!Array.isArray(value)) {
      const key = Object.keys(value).find((name) => PROTOTYPE_KEYS.has(name));
      if (key !== undefined) return `the key "${key}" is not allowed`;
    }
    for (const member of Array.isArray(value) ? value : Object.values(value)) open.push([member, depth + 1]);
  }
  return null;
}

const quoted = (key: string) => JSON.stringify(key);

function invalidAt(point: HookPoint, error: z.ZodError, under?: string): HookFailure {
  const issues = error.issues.map(furthest);
  // A misspelt key also makes the right key missing: report the misspelt one first.
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0];
  const path = [...(under === undefined ? [] : [under]), ...(issue?.path ?? [])];
  if (issue?.code === 'unrecognized_keys')
    return invalid(point, `unknown key ${[issue.keys[0], ...path.reverse()].map(String).map(quoted).join(' in ')}`);
  return invalid(point, `${path.join('.') || 'the return'}: ${issue?.message ?? 'cannot be read'}`);
}

// The issue of a union names no member. Take the alternative that matched furthest.
function furthest(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code !== 'invalid_union') return issue;
  const inner = issue.errors.flatMap(([first]) => (first ? [furthest(first)] : []));
  const best = inner.sort((a, b) => b.path.length - a.path.length)[0];
  return best ? { ...best, path: [...issue.path, ...best.path] } : issue;
}

function invalid(point: HookPoint, message: string): HookFailure {
  return { code: 'verdict_invalid', message: `${point}: ${message}` };
}

function notAllowed(point: HookPoint, what: string, where: readonly HookPoint[]): HookFailure {
  return { code: 'verdict_not_allowed', message: `${point}: ${what} is not allowed here, only at ${where.join(', ')}` };
}
