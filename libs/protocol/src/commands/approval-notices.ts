/** Notices of approvals: what people and their programs are told when a call waits for them. */
import * as z from 'zod';
import { BOUNDS } from '../wire/bounds.ts';
import { Json } from '../wire/json.ts';

/** A call waits for a person. The same on the bus and as the body of a webhook. */
export const ApprovalNotice = z.strictObject({
  type: z.literal('approval.requested'),
  /** ISO 8601: when it was asked. */
  timestamp: z.string(),
  data: z.strictObject({
    tenant: z.string(),
    session_id: z.string(),
    persona: z.string().nullable(),
    call_id: z.string(),
    tool: z.string(),
    /** Shortened, and without what looks like a secret: the journal has them whole. */
    args: Json,
    /** `rule:<which>`, `hook:<which>` or `unknown_outcome`. */
    requested_by: z.string(),
    question: z.string().optional(),
    /** ISO 8601; where the approval expires. */
    expires_at: z.string().optional(),
  }),
});
/** See {@link ApprovalNotice}. */
export type ApprovalNotice = z.infer<typeof ApprovalNotice>;

/** What became of a notice. `failed`: it was tried as often as it may be, or refused for good. */
export const NoticeOutcome = z.strictObject({
  type: z.literal('notice_outcome'),
  effect_id: z.string(),
  status: z.enum(['delivered', 'failed', 'cancelled']),
  attempts: z.number().int().nonnegative(),
  /** Why it failed. */
  error: z
    .strictObject({ code: z.literal('notice_failed'), message: z.string().max(BOUNDS.reasonMaxBytes) })
    .optional(),
});
/** See {@link NoticeOutcome}. */
export type NoticeOutcome = z.infer<typeof NoticeOutcome>;
