/** How the cancelling of a call ended: read from the record that decided it, and answered by clients and gateways. */
import * as z from 'zod';
import type { JournalRecord } from './record.ts';

/**
 * How a `cancel_call` ended. `cancelled`: the call is stopped. `already_cancelled`: an earlier cancel stopped it, or is
 * stopping it; its reason stands. `not_found`: no such call is open, because it has ended or never was. `timeout`: the tool
 * did not stop within the time of the command; the session continues without it and drops its late answer.
 */
export const CancelOutcome = z.enum(['cancelled', 'already_cancelled', 'not_found', 'timeout']);
/** See {@link CancelOutcome}. */
export type CancelOutcome = z.infer<typeof CancelOutcome>;

/** The outcome of a `cancel_call`, with the call that it is about. */
export const CallCancellation = z.strictObject({
  outcome: CancelOutcome,
  call_id: z.string(),
  tool: z.string().nullable().meta({
    description:
      'The tool of the call. With `not_found`: the tool of a call that has ended; null for a call that is not among the calls of the newest answer, or where the run has ended.',
  }),
  reason: z.string().nullable().meta({
    description:
      'Why the call was cancelled, as the first cancel says. Null without a reason, and where that cancel is over.',
  }),
});
/** See {@link CallCancellation}. */
export type CallCancellation = z.infer<typeof CallCancellation>;

/**
 * The outcome of a `cancel_call` in a record: its `control_outcome`. It may come later than the command, as a tool may take
 * a while to stop.
 * @returns null where the record does not decide that command.
 */
export function cancellationIn({ events }: Pick<JournalRecord, 'events'>, commandId: string): CallCancellation | null {
  for (const event of events) {
    if (event.type !== 'control_outcome' || event.control !== 'cancel_call' || event.command_id !== commandId) continue;
    // A rejected command has the code of its rejection instead.
    const outcome = CancelOutcome.safeParse(event.status);
    if (outcome.success)
      return {
        outcome: outcome.data,
        call_id: event.target,
        tool: event.tool ?? null,
        reason: event.reason ?? null,
      };
  }
  return null;
}
