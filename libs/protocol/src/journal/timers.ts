/** Timers: what a session may have itself woken for, and how a due timer comes back to it. */
import * as z from 'zod';

/** What a timer is for. */
export const TimerPurpose = z.enum(['suspension', 'wake_interval', 'time_budget', 'approval', 'waiting_for_persona']);
/** See {@link TimerPurpose}. */
export type TimerPurpose = z.infer<typeof TimerPurpose>;

/** What a timer carries, as a store keeps it. Fields that it does not have are refused. */
export const TimerPayload = z.strictObject({
  effect_id: z.string().regex(/^\d+-\d+$/),
  due_at_ms: z.number().int(),
});
/** See {@link TimerPayload}. */
export type TimerPayload = z.infer<typeof TimerPayload>;

/** A timer is due. Made by stores of timers only. */
export const TimerInput = z.strictObject({ type: z.literal('timer'), ...TimerPayload.shape });
/** See {@link TimerInput}. */
export type TimerInput = z.infer<typeof TimerInput>;
