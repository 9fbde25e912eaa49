/**
 * Parsed answers of hooks in the journal: verdicts, reminders and failures.
 */
import * as z from 'zod';
import { Message } from '../journal/messages.ts';
import { REMINDER_FIELDS } from '../journal/reminders.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { listOf } from '../wire/containers.ts';
import { Json, JsonObject, WrapperObject } from '../wire/json.ts';
import { hasVisibleText } from '../wire/unicode-text.ts';
import { JobReceipt } from './job-receipts.ts';

/** The meaning of a handler's return value. */
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
    /** Maximum length of the text in characters, by `max_output` of the registration. */
    max_output: z.number().int().positive().optional(),
  }),
  z.strictObject({ kind: z.literal('rewrite_output'), output: Json }),
  z.strictObject({
    kind: z.literal('replace_messages'),
    /** The messages of the request: messages of the view by their index, others in full. */
    messages: listOf(z.union([z.number().int().nonnegative(), Message])),
  }),
  z.strictObject({
    kind: z.literal('gate'),
    /**
     * One verdict for each call of the batch. `invalid` is the problem of a malformed entry, which denies the call. A
     * missing entry denies too.
     */
    calls: listOf(
      z.union([
        z.strictObject({ allow: z.boolean(), reason: z.string().optional() }),
        z.strictObject({ invalid: z.string() }),
      ]),
    ),
  }),
  z.strictObject({ kind: z.literal('job'), receipt: JobReceipt }),
]);
export type Verdict = z.infer<typeof Verdict>;

/**
 * A reminder of a handler. It is delivered immediately, so the modes that choose a seam are rejected. With the mode
 * `audit_only` it is only recorded, and no model reads it.
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
export type HookReminder = z.infer<typeof HookReminder>;
/** A reminder before defaults. */
export type HookReminderInput = z.input<typeof HookReminder>;

/** A parsed return value: the verdict, and the reminders next to it, in order. */
export interface HookReturn {
  readonly verdict: Verdict;
  readonly reminders: readonly HookReminder[];
}

/** Why a registration gave no verdict. */
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
export type HookFailure = z.infer<typeof HookFailure>;

/**
 * Whether a failed answer counts as a refusal regardless of the registration's `on_error`: the hook returned a verdict
 * that is invalid, or not allowed at its point. All other failures follow `on_error`, also an unreadable return value.
 */
export function isWrongAnswer({ code }: HookFailure): boolean {
  return code === 'verdict_invalid' || code === 'verdict_not_allowed';
}

/** The answer of one registration in a consult. */
export const HookAnswer = z.strictObject({
  hook: z.string(),
  /** The unparsed return value; absent if there is none, or if it is too large, not JSON or `{messages}`. */
  raw: Json.optional(),
  verdict: Verdict.optional(),
  reminders: listOf(HookReminder).min(1).max(BOUNDS.remindersPerReturnMax).optional(),
  failure: HookFailure.optional(),
  /** Not called: an earlier answer ended the chain, the consult was aborted, or the hook's condition does not match. */
  not_run: z.literal(true).optional(),
  /** The payload for this handler, if an earlier handler changed it. */
  payload: WrapperObject.optional(),
});
export type HookAnswer = z.infer<typeof HookAnswer>;
