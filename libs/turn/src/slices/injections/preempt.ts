/**
 * Preempting interrupts: steers and reminders with `preempt: true` in their body. They end the open model call, or the
 * tool calls in flight, but no hooks and no compaction. If the open turn has no model call and no tool call in flight,
 * and no seam delivers the interrupt first, the next model call of the turn ends before it is sent.
 *
 * The members of the context: `preempted`, of the model call or of a tool call, orders its end. The list `preempting` has
 * the interrupts of the open turn that found no work to end.
 *
 * The next seam for interrupts delivers them; with `one_at_a_time` see `dueAt` (seam-passes.ts). As with any interrupt, the seam
 * `pre_tool_dispatch` skips the calls that have not started, also parked ones, whose approvals it supersedes
 * (`dispatchCheckpoint` in seam-passes.ts).
 *
 * PREEMPT-1  A preempting interrupt ends running work once: on arrival (`injectionReceived`, queue.ts), or when
 *     `user_prompt_submit` hooks accept it (`guardEnded`, message-hooks.ts). It does not affect work after its
 *     delivery.
 * PREEMPT-2  The text of a partial answer is kept and marked; its calls are dropped. An answer that is complete in
 *     spite of the interrupt is recorded whole.
 * PREEMPT-3  A call in flight ends `cancelled`, or `interrupted` if that is its outcome. A call that has an outcome,
 *     which hooks check, is not affected.
 */

import { type Actor, BOUNDS } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import type { AbortOrder } from '../../core/effect.ts';
import { orderPreemption } from '../calls/row-changes.ts';
import { isInFlight } from '../calls/table.ts';
import { awaitsVerdict } from './waiting.ts';

/** The reason of an abort by a preempting interrupt, for models and tools. */
export const PREEMPT_REASON = 'a preempting message arrived';

/** The order to abort a model call or a tool call that a preempting interrupt ends. */
export const PREEMPT_ORDER: AbortOrder = { reason: PREEMPT_REASON, graceMs: BOUNDS.abortGraceMs };

/**
 * The changes of the context by a preempting interrupt (PREEMPT-1), except those of the queue, which its callers make.
 */
export function preemptOpenWork(
  context: SessionContext,
  commandId: string,
  actor: Actor | undefined,
): Partial<SessionContext> {
  // An aborting run has already ordered the end of all its work.
  if (context.aborting) return {};
  if (context.model) return { model: { ...context.model, preempted: true } };
  if (!context.calls.some(isInFlight))
    return context.turn_open ? { preempting: [...queuedPreempters(context), commandId] } : {};
  return { calls: context.calls.map((row) => orderPreemption(row, { actor })) };
}

/** Whether the next model call must end before it is sent: a preempting interrupt of the open turn is still queued. */
export function isNextModelCallPreempted(context: SessionContext): boolean {
  return queuedPreempters(context).length > 0;
}

// Of the list `preempting`, those that still end a model call. A message that was delivered, revoked, blocked or collapsed
// meanwhile does not. Nor does one whose text was replaced, as long as hooks must check the new text.
function queuedPreempters(context: SessionContext): readonly string[] {
  const waits = (id: string) => context.pending.some((one) => one.command_id === id && !awaitsVerdict(context, one));
  return context.preempting.filter(waits);
}
