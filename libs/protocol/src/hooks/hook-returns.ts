/**
 * The return protocol: the return values of handlers, their points, and their meaning.
 */

import type { Message } from '../journal/messages.ts';
import type { CamelCased } from '../wire/casing.ts';
import type { Json, JsonObject } from '../wire/json.ts';
import type { AllowAnswer, AskAnswer, DenyAnswer, JobAnswer, RemindAnswer, RewriteAnswer } from './hook-helpers.ts';
import { HOOK_CATALOGUE, HOOK_POINTS, type HookPoint } from './hook-points.ts';
import type { JobReceiptInput } from './job-receipts.ts';
import type { HookReminderInput } from './verdicts.ts';

const VETOABLE = ['user_prompt_submit', 'pre_compact', 'pre_suspend'] as const;
const DENIABLE = ['PreToolUse', 'PreStep', 'PostStep', 'OnApprovalRequested', 'OnHandoffEmitted'] as const;
const REWRITES_ARGS = ['PreToolUse', 'PreStep'] as const;
const REWRITES_RESULT = ['PostToolUse'] as const;
const REWRITES_OUTPUT = ['PostStep'] as const;
const DECIDES = ['permission_asked'] as const;
const SHAPES = ['transform_context'] as const;
const GATES = ['gate_tool_calls'] as const;

type AnsweringPoint =
  | (typeof VETOABLE)[number]
  | (typeof DENIABLE)[number]
  | (typeof REWRITES_ARGS)[number]
  | (typeof REWRITES_RESULT)[number]
  | (typeof REWRITES_OUTPUT)[number]
  | (typeof DECIDES)[number]
  | (typeof SHAPES)[number]
  | (typeof GATES)[number];
/** A point whose hooks only observe, add reminders, or return a job. */
export type AdvisoryPoint = Exclude<HookPoint, AnsweringPoint>;

const ANSWERING: ReadonlySet<HookPoint> = new Set<HookPoint>([
  ...VETOABLE,
  ...DENIABLE,
  ...REWRITES_ARGS,
  ...REWRITES_RESULT,
  ...REWRITES_OUTPUT,
  ...DECIDES,
  ...SHAPES,
  ...GATES,
]);
const ADVISORY = HOOK_POINTS.filter((point): point is AdvisoryPoint => !ANSWERING.has(point));
const OF_SESSIONS = HOOK_POINTS.filter((point) => HOOK_CATALOGUE[point].surfaces.includes('session'));

/**
 * Whether a failure of a hook can refuse at a point. Not where hooks only observe, nor where they look at a request to a
 * person, who still decides.
 */
export function failureRefusesAt(point: HookPoint): boolean {
  return ANSWERING.has(point) && point !== 'OnApprovalRequested';
}

/** One return value of the protocol: its form, its meaning, and its points. */
export interface ReturnRow {
  readonly written: string;
  readonly means: string;
  readonly points: readonly HookPoint[];
}

/** The return protocol with wire names. The parser, the generated reference and the tests all read this table. */
export const HOOK_RETURNS = {
  nothing: {
    written: 'nothing or `true`',
    means: 'no objection, as if this handler were not there; at `GateToolCalls` it denies the batch',
    points: HOOK_POINTS,
  },
  veto: { written: '`false`, `{block: true, reason?}`', means: 'veto', points: VETOABLE },
  decision: { written: '`{decision: allow, deny or ask, reason?}`', means: 'the permission answer', points: DECIDES },
  deny: { written: '`{deny: reason}`', means: 'refuse', points: DENIABLE },
  args: { written: '`{args}`', means: 'rewrite the arguments', points: REWRITES_ARGS },
  result: { written: 'a string, `{result?, is_error?}`', means: 'rewrite the result', points: REWRITES_RESULT },
  output: { written: '`{output}`', means: 'rewrite the output', points: REWRITES_OUTPUT },
  messages: { written: '`{messages}`', means: 'what the request shows', points: SHAPES },
  gate: {
    written: '`[{allow, reason?}, …]`',
    means: 'one answer per call, in call order; a malformed one denies its call, a list of another length all calls',
    points: GATES,
  },
  reminder: {
    written: '`{reminder: {…}, then?: …}`',
    means: 'add a reminder, then apply the inner answer',
    points: HOOK_POINTS,
  },
  body: {
    written: '`{body, tags?, dedupe_key?, …}`',
    means: 'add a reminder, no objection; at `GateToolCalls` it denies the batch',
    points: HOOK_POINTS,
  },
  reminders: {
    written: '`[{reminder: {…}}, …]`',
    means: 'several reminders, in order; of those with one `dedupe_key` the last',
    points: OF_SESSIONS,
  },
  job: {
    written: '`{job: receipt}`',
    means: 'the work continues elsewhere; its end is reported as feedback',
    points: ADVISORY,
  },
} as const satisfies Readonly<Record<string, ReturnRow>>;

type Nothing = undefined | null | true;
type RewrittenResult = string | { result: string; isError?: boolean } | { isError: boolean; result?: string };
type Reminder = CamelCased<HookReminderInput>;
type ShownMessages = readonly CamelCased<Message>[];
type Refusing = (typeof VETOABLE)[number] | (typeof DENIABLE)[number] | 'permission_asked' | 'gate_tool_calls';
/** The answers of helpers that are valid at a point, without `remind()`. */
type Helped<P extends HookPoint> =
  | (P extends Exclude<Refusing, 'OnApprovalRequested'> ? AllowAnswer : never)
  | (P extends Refusing ? DenyAnswer : never)
  | (P extends 'permission_asked' ? AskAnswer : never)
  | (P extends (typeof REWRITES_ARGS)[number] ? RewriteAnswer<JsonObject> : never)
  | (P extends 'PostToolUse' ? RewriteAnswer<RewrittenResult> : never)
  | (P extends 'PostStep' ? RewriteAnswer<Json> : never)
  | (P extends 'transform_context' ? RewriteAnswer<ShownMessages> : never)
  | (P extends AdvisoryPoint ? JobAnswer : never);
type GateVerdict = { allow: boolean; reason?: string } | AllowAnswer | DenyAnswer;
type Answer<P extends HookPoint> =
  | Helped<P>
  | (P extends (typeof VETOABLE)[number] ? false | { block: true; reason?: string } : never)
  | (P extends 'permission_asked' ? { decision: 'allow' | 'deny' | 'ask'; reason?: string } : never)
  | (P extends (typeof DENIABLE)[number] ? { deny: string } : never)
  | (P extends (typeof REWRITES_ARGS)[number] ? { args: JsonObject } : never)
  | (P extends 'PostToolUse' ? RewrittenResult : never)
  | (P extends 'PostStep' ? { output: Json } : never)
  | (P extends 'transform_context' ? { messages: ShownMessages } : never)
  | (P extends 'gate_tool_calls' ? readonly GateVerdict[] : never)
  | (P extends AdvisoryPoint ? { job: CamelCased<JobReceiptInput> } : never);
type PersonaPoint = 'PreStep' | 'PostStep' | Extract<HookPoint, `On${string}`>;
type SessionPoint = Exclude<HookPoint, 'PreToolUse' | 'PostToolUse' | PersonaPoint>;
/** Reminders without an answer. */
type Reminders<P extends HookPoint> =
  | Reminder
  | (P extends SessionPoint ? readonly ({ reminder: Reminder } | RemindAnswer<undefined>)[] : never);
// At the gate a reminder requires an answer: without one, the gate refuses the batch.
type Reminding<P extends HookPoint> = P extends 'gate_tool_calls'
  ? RemindAnswer<Answer<P>> | { reminder: Reminder; then: Answer<P> }
  :
      | RemindAnswer<Nothing | Answer<P>>
      | Reminders<P>
      | { reminder: Reminder; then?: Nothing | Answer<P> | Reminders<P> };

/** What a handler of a point may return, with members in camelCase. */
export type HandlerReturn<P extends HookPoint> = Nothing | Answer<P> | Reminding<P>;
