/**
 * The outcome of a `cancel_call`: read from the record that decided it, returned by clients and gateways.
 */
import * as z from 'zod';
import type { JournalRecord } from './record.ts';

/**
 * The outcome of a `cancel_call`.
 *
 * - `cancelled`: the call is stopped.
 * - `already_cancelled`: the call has ended as `cancelled`, by an earlier cancel of the call or the run, or by a
 *   preempting interrupt; or an earlier cancel is stopping it. The first reason is kept.
 * - `not_found`: the call does not exist or ended otherwise, or the run has ended.
 * - `timeout`: the tool did not confirm that it stopped: the time of the command is over, or the order to stop reached
 *   no worker. The session continues without the call and drops its late answer.
 */
export const CancelOutcome = z.enum(['cancelled', 'already_cancelled', 'not_found', 'timeout']);
export type CancelOutcome = z.infer<typeof CancelOutcome>;

/** The outcome of a `cancel_call`, with the id of the call. */
export const CallCancellation = z.strictObject({
  outcome: CancelOutcome,
  call_id: z.string(),
  tool: z.string().nullable().meta({
    description:
      'The tool of the call. With `not_found`: the tool of a call that has ended; null for a call that is not among the calls of the newest answer, or where the run has ended.',
  }),
  reason: z.string().nullable().meta({
    description:
      'Why the call was cancelled, as the first cancel says. Null if that cancel gave no reason, if the call has ended by then, and with `not_found`.',
  }),
});
export type CallCancellation = z.infer<typeof CallCancellation>;

/**
 * The outcome of a `cancel_call` in a record: its `control_outcome`. The record of the command or a later one contains
 * it, because a tool may take time to stop.
 * @returns null if the record has no outcome of the command, or rejects it.
 */
export function cancellationIn({ events }: Pick<JournalRecord, 'events'>, commandId: string): CallCancellation | null {
  for (const event of events) {
    if (event.type !== 'control_outcome' || event.control !== 'cancel_call' || event.command_id !== commandId) continue;
    // The status of a rejected command is the code of its rejection.
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
