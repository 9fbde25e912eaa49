/**
 * Timers: the purposes for which a session sets timers, and the input of a due timer.
 */
import * as z from 'zod';

/** The purpose of a timer. */
export const TimerPurpose = z.enum(['suspension', 'wake_interval', 'time_budget', 'approval', 'waiting_for_persona']);
export type TimerPurpose = z.infer<typeof TimerPurpose>;

/** The content of a stored timer. Unknown members are rejected. */
export const TimerPayload = z.strictObject({
  effect_id: z.string().regex(/^\d+-\d+$/),
  due_at_ms: z.number().int(),
});
export type TimerPayload = z.infer<typeof TimerPayload>;

/** The input of a due timer. Made by timer stores only. */
export const TimerInput = z.strictObject({ type: z.literal('timer'), ...TimerPayload.shape });
export type TimerInput = z.infer<typeof TimerInput>;
