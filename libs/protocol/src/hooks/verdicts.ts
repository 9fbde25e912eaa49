/** What hooks have answered, as journals hold it: verdicts, reminders, and why there is no verdict. */
import * as z from 'zod';
import { Message } from '../journal/messages.ts';
import { REMINDER_FIELDS } from '../journal/reminders.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { Json, JsonObject } from '../wire/json.ts';
import { hasVisibleText } from '../wire/unicode-text.ts';
import { JobReceipt } from './job-receipts.ts';

/** What a handler's answer means, after parsing. */
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
    /** Characters that are left of the text, by the registration's `max_output`. */
    max_output: z.number().int().positive().optional(),
  }),
  z.strictObject({ kind: z.literal('rewrite_output'), output: Json }),
  z.strictObject({
    kind: z.literal('replace_messages'),
    /** What the request shows: messages of the view by their place in it, or others in full. */
    messages: z.array(z.union([z.number().int().nonnegative(), Message])),
  }),
  z.strictObject({
    kind: z.literal('gate'),
    /** One per call of the batch. `invalid` says what is wrong with a malformed entry, and denies; so does what is missing. */
    calls: z.array(
      z.union([
        z.strictObject({ allow: z.boolean(), reason: z.string().optional() }),
        z.strictObject({ invalid: z.string() }),
      ]),
    ),
  }),
  z.strictObject({ kind: z.literal('job'), receipt: JobReceipt }),
]);
/** See {@link Verdict}. */
export type Verdict = z.infer<typeof Verdict>;

/**
 * A reminder that a handler adds. It is in the transcript at once, so a mode that says when to deliver it has no effect and
 * is refused; with `audit_only` no model is shown it.
 */
export const HookReminder = z.strictObject({
  body: z.string().refine(hasVisibleText, { error: 'must not be empty' }),
  mode: z
    .literal('audit_only', {
      error: "only audit_only has an effect here: a hook's reminder is delivered at once; leave mode out to show it",
    })
    .optional(),
  dedupe_key: z.string().min(1).max(256).optional(),
  ...REMINDER_FIELDS,
});
/** See {@link HookReminder}. */
export type HookReminder = z.infer<typeof HookReminder>;
/** A reminder as a handler writes it. */
export type HookReminderInput = z.input<typeof HookReminder>;

/** A parsed return: the answer itself, and the reminders that come with it, in order. */
export interface HookReturn {
  readonly verdict: Verdict;
  readonly reminders: readonly HookReminder[];
}

/** Why a consult of one registration gave no verdict. */
export const HookFailure = z.strictObject({
  code: z.enum([
    'hook_threw',
    'hook_timeout',
    'hook_unavailable',
    'return_unreadable',
    'verdict_invalid',
    'verdict_not_allowed',
  ]),
  message: z.string(),
});
/** See {@link HookFailure}. */
export type HookFailure = z.infer<typeof HookFailure>;

/** Whether an answer that failed so is refused whatever the registration's `on_error` says: it did answer, and wrongly. */
export function isWrongAnswer({ code }: HookFailure): boolean {
  return code === 'verdict_invalid' || code === 'verdict_not_allowed';
}

/** One registration's part in a consult. */
export const HookAnswer = z.strictObject({
  hook: z.string(),
  /** What the handler returned, as it came. */
  raw: Json.optional(),
  verdict: Verdict.optional(),
  reminders: z.array(HookReminder).min(1).max(BOUNDS.remindersPerReturnMax).optional(),
  failure: HookFailure.optional(),
  /** An earlier veto ended the chain before this registration was asked. */
  not_run: z.literal(true).optional(),
  /** The payload as this handler saw it, where an earlier rewrite had changed it. */
  payload: Json.optional(),
});
/** See {@link HookAnswer}. */
export type HookAnswer = z.infer<typeof HookAnswer>;
