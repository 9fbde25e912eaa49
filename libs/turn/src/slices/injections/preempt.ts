/**
 * Interrupts that do not wait (`preempt`): they end the model answer that streams, or the calls in flight, and are then
 * delivered at the seam that comes next anyway. Hooks, gate and people are not hurried: they are asked about what has
 * not begun, and the stop seam stands behind them.
 *
 * P1  It ends what runs when it comes, once; what begins after its delivery is not its affair.
 * P2  What an answer had said by then stays, marked as partial; its unfinished calls are dropped.
 * P3  A call in flight ends `cancelled`. One that had returned keeps its result: there is nothing left to end.
 */

import { type Actor, BOUNDS } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import type { AbortOrder } from '../../core/effect.ts';
import { preempted } from '../calls/rungs.ts';
import { isInFlight } from '../calls/table.ts';
import { awaitsVerdict } from './waiting.ts';

/** Why an effect is stopped that an interrupt does not wait for, in the words that models and tools are given. */
export const PREEMPTED = 'a preempting message arrived';

/** What tells the outside world to stop, and how long it may take. */
export const PREEMPT_ORDER: AbortOrder = { reason: PREEMPTED, graceMs: BOUNDS.abortGraceMs };

/** The members of the context, apart from the queue, that such an interrupt changes when it comes or its hooks allow it. */
export function preempt(context: SessionContext, commandId: string, actor: Actor | undefined): Partial<SessionContext> {
  // On the way down everything has been told to stop already.
  if (context.aborting) return {};
  if (context.model) return { model: { ...context.model, preempted: true } };
  if (!context.calls.some(isInFlight)) return context.turn_open ? { preempting: [...waiting(context), commandId] } : {};
  return { calls: context.calls.map((row) => preempted(row, { actor })) };
}

/** Whether the open turn's model is not to be asked for an answer: such an interrupt came before, and waits still. */
export function isPreempted(context: SessionContext): boolean {
  return waiting(context).length > 0;
}

// A message that was delivered, withdrawn, blocked or collapsed meanwhile has nothing more to end. One with a new text waits
// for hooks again.
function waiting(context: SessionContext): readonly string[] {
  const waits = (id: string) => context.pending.some((one) => one.command_id === id && !awaitsVerdict(context, one));
  return context.preempting.filter(waits);
}
