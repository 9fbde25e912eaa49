/**
 * Notifications of pending approvals, for people and their programs.
 */
import * as z from 'zod';
import { BOUNDS } from '../wire/bounds.ts';
import { Json } from '../wire/json.ts';

/** The notification that a call waits for a human approval. The same on the bus and as the body of a webhook. */
export const ApprovalNotice = z.strictObject({
  type: z.literal('approval.requested'),
  /** Time of the request, ISO 8601. */
  timestamp: z.string(),
  data: z.strictObject({
    tenant: z.string(),
    session_id: z.string(),
    persona: z.string().nullable(),
    call_id: z.string(),
    tool: z.string(),
    /** Shortened, and without texts that look like secrets. The journal contains the whole arguments. */
    args: Json,
    /** `rule:<rule>` or `unknown_outcome`. */
    requested_by: z.string(),
    question: z.string().optional(),
    /** Expiry of the approval, ISO 8601; absent if it does not expire. */
    expires_at: z.string().optional(),
  }),
});
export type ApprovalNotice = z.infer<typeof ApprovalNotice>;

/**
 * The outcome of a notification. `failed`: all attempts failed, the receiver rejected it permanently, or the host has
 * no receiver. `cancelled`: the call no longer waits for the approval.
 */
export const ApprovalNoticeOutcome = z.strictObject({
  type: z.literal('notice_outcome'),
  effect_id: z.string(),
  status: z.enum(['delivered', 'failed', 'cancelled']),
  attempts: z.number().int().nonnegative(),
  /** Why it failed. */
  error: z
    .strictObject({ code: z.literal('notice_failed'), message: z.string().max(BOUNDS.reasonMaxBytes) })
    .optional(),
});
export type ApprovalNoticeOutcome = z.infer<typeof ApprovalNoticeOutcome>;
