/** Who ended a call before its time, and why, in the words that the model and the transcript show. */
import type { Actor } from '@coxswain/protocol';
import type { CallRow, SessionContext } from './context.ts';
import { because } from './decision.ts';
import { PREEMPTED } from './preempt.ts';

/** Who, as it stands behind "Cancelled by", and why, where a reason is known. */
export interface Canceller {
  readonly who: string;
  readonly reason: string | undefined;
}

/** A sender's name. Commands on the bus need not have one. */
export function nameOf(actor: Actor | null | undefined): string {
  return actor?.name ?? 'an unnamed sender';
}

/** Who ended the run before its time: the sender of its cancel, or the host, for a used-up budget or a failure. */
export function runCancellerOf(context: SessionContext): Canceller {
  const { stop_reason, cancel_actor, cancel_reason, failure } = context;
  const isCancelled = stop_reason === 'cancelled';
  const who = isCancelled ? nameOf(cancel_actor) : 'the host';
  return { who: `${who}, with the run`, reason: cancel_reason ?? (isCancelled ? undefined : failure?.message) };
}

/** Who ended a call: the sender of its cancel, of the run's, or of the interrupt that did not wait for it. */
export function cancellerOf(context: SessionContext, { cancel, preempted }: CallRow): Canceller {
  if (cancel) return { who: nameOf(cancel.actor), reason: cancel.reason };
  if (!context.aborting && preempted) return { who: nameOf(preempted.actor), reason: PREEMPTED };
  return runCancellerOf(context);
}

/** The result of a call that PostToolUse hooks had no chance to see: they may be there to keep it back. */
export function unseenText({ who, reason }: Canceller): string {
  return `Cancelled by ${who} after the tool had run${because(reason)}. The result is withheld because hooks had not checked it.`;
}
