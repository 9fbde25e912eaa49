/** Deltas: a running answer as it streams. Ephemeral; the journal holds the whole. */
import * as z from 'zod';

/** One piece of a running effect's output. `index` is dense per effect, from 0. */
export const Delta = z.strictObject({
  type: z.literal('message_update'),
  session_id: z.string(),
  effect_id: z.string(),
  epoch: z.number().int().positive(),
  turn: z.number().int().nonnegative(),
  index: z.number().int().nonnegative(),
  kind: z.enum(['text', 'reasoning', 'call', 'progress']),
  text: z.string(),
  call_id: z.string().optional(),
  tool: z.string().optional(),
});
/** See {@link Delta}. */
export type Delta = z.infer<typeof Delta>;
