/**
 * Feedback: messages of tools, hooks, hosts and the machine itself to the model. One message is a piece. The pieces
 * wait in a bounded queue, and the seams `pre_compact` and `post_compact` deliver them. Dropped pieces are counted, and
 * the last piece of a delivery contains their number.
 */

import {
  BOUNDS,
  type EventOf,
  type Feedback,
  type FeedbackInput,
  hostNotice,
  type SessionEvent,
  userText,
} from '@coxswain/protocol';
import { noteSourceCommand } from '../../core/command-memory.ts';
import type { SessionContext } from '../../core/context.ts';
import { type Decision, events } from '../../core/decision.ts';
import { stallFeedbackQueued } from '../stalls/stalls.ts';
import type { PendingFeedback } from './state.ts';

/** Decides feedback of hosts: pieces are queued in order up to the bound, and the others counted as dropped. */
export function decideFeedback(context: SessionContext, input: FeedbackInput): Decision {
  if (context.run === 0) return { kind: 'ignored', reason: 'there is no such session' };
  const room = Math.max(0, BOUNDS.feedbackPendingMax - context.feedback.length);
  const list: SessionEvent[] = input.items.slice(0, room).map((item, index) => kept(context, item, index));
  const beyond = input.items.slice(room);
  const count = beyond.length + (input.dropped?.count ?? 0);
  const last = input.dropped ?? beyond.at(-1);
  if (last && count > 0) list.push(notKept(last.source, count));
  return list.length === 0 ? { kind: 'ignored', reason: 'no feedback' } : events(...list);
}

/**
 * The event of one piece of feedback, from the machine or from a command.
 * @param before the number of earlier pieces in the same record.
 */
export function feedbackEvent(
  context: SessionContext,
  item: Feedback,
  { commandId, before = 0 }: { readonly commandId?: string; readonly before?: number } = {},
): SessionEvent {
  const hasRoom = context.feedback.length + before < BOUNDS.feedbackPendingMax;
  const event = hasRoom ? kept(context, item, before) : notKept(item.source, 1);
  return commandId === undefined ? event : { ...event, command_id: commandId };
}

// The colon distinguishes these ids from command ids, which cannot contain one.
function kept(context: SessionContext, { source, body }: Feedback, index: number): EventOf<'feedback_received'> {
  return { type: 'feedback_received', feedback_id: `feedback:${context.feedback_count + index + 1}`, source, body };
}

function notKept(source: string, count: number): EventOf<'feedback_dropped'> {
  return { type: 'feedback_dropped', source, count, code: 'too_much_feedback' };
}

/** The event of the next delivered piece that is not yet in the transcript; null if there is none. */
export function nextFeedback(context: SessionContext): SessionEvent | null {
  const [feedback, ...more] = context.delivering_feedback;
  if (!feedback) return null;
  return {
    type: 'message_injected',
    command_id: feedback.feedback_id,
    origin: 'feedback',
    seam: context.delivering_seam,
    turn: context.turn,
    message: userText(rendered(feedback, more.length === 0 ? context.feedback_dropped : 0)),
  };
}

function rendered({ source, body }: PendingFeedback, dropped: number): string {
  if (dropped === 0) return hostNotice(source, body);
  const notices = dropped === 1 ? 'notice was' : 'notices were';
  return hostNotice(
    source,
    `${body}\n[${dropped} more ${notices} dropped: the queue holds at most ${BOUNDS.feedbackPendingMax}.]`,
  );
}

/** The queue and the counts after a feedback event. */
export function feedbackEvolved(
  context: SessionContext,
  event: EventOf<'feedback_received'> | EventOf<'feedback_dropped'>,
): Partial<SessionContext> {
  if (event.type === 'feedback_dropped') return { feedback_dropped: context.feedback_dropped + event.count };
  const { feedback_id, source, body } = event;
  return {
    feedback: [...context.feedback, { feedback_id, source, body }],
    feedback_count: context.feedback_count + 1,
  };
}

/** A checkpoint delivers feedback: the oldest pieces, `inbox_delivered` of them, leave the queue. */
export function feedbackTaken(
  context: SessionContext,
  { kind, inbox_delivered: count }: EventOf<'loop_checkpoint'>,
): Partial<SessionContext> {
  if (count === 0) return {};
  return {
    delivering_feedback: context.feedback.slice(0, count),
    delivering_seam: kind,
    feedback: context.feedback.slice(count),
  };
}

/** A piece is in the transcript. The last one of a delivery resets the count of dropped pieces. */
export function feedbackDelivered(context: SessionContext, feedbackId: string): Partial<SessionContext> {
  const delivering = context.delivering_feedback.filter((feedback) => feedback.feedback_id !== feedbackId);
  return { delivering_feedback: delivering, ...(delivering.length === 0 ? { feedback_dropped: 0 } : {}) };
}

/** Feedback was queued or dropped. Stall detection remembers its own feedback, so that it does not repeat it. */
export function feedbackNoted(
  context: SessionContext,
  event: EventOf<'feedback_received'> | EventOf<'feedback_dropped'>,
): Partial<SessionContext> {
  return {
    ...feedbackEvolved(context, event),
    stall: stallFeedbackQueued(context.stall, event.source),
    ...noteSourceCommand(context, event),
  };
}
