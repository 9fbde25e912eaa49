/** Receipts: what becomes of a command, told to the inbox that its sender named. */
import { z } from 'zod';
import { JsonObject } from './json.ts';

/** One receipt. A receipt is sent only after the record that it speaks of is durable. */
export const Receipt = z.strictObject({
  type: z.literal('receipt'),
  session_id: z.string(),
  command_id: z.string(),
  stage: z.enum(['accepted', 'rejected', 'delivered', 'blocked', 'revoked']),
  /** The record that holds it; absent where nothing was recorded (an unknown session). */
  n: z.number().int().positive().optional(),
  code: z.string().optional(),
  message: z.string().optional(),
  field: z.string().optional(),
  detail: JsonObject.optional(),
  seam: z.string().optional(),
  turn: z.number().int().nonnegative().optional(),
  reason: z.string().optional(),
  /** It waits for the next run: the session has ended. */
  pending_for_next_run: z.literal(true).optional(),
});
/** See {@link Receipt}. */
export type Receipt = z.infer<typeof Receipt>;
