/**
 * Passes of seams (event `loop_checkpoint`): which messages a pass delivers, and the events that put them into the
 * transcript. The queue has the order of arrival: `queueInjection` and `collapse` (queue.ts). Which modes a seam delivers:
 * `SEAMS` (libs/protocol).
 */

import {
  assertNever,
  type EventOf,
  type MessageSource,
  type Mode,
  messageText,
  SEAMS,
  type SeamKind,
  type SessionEvent,
  userText,
} from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import type { Placed } from '../../core/journal-place.ts';
import { HANDOFF_SEAM } from '../handoff/handoff.ts';
import { announcementsAreFull } from '../hooks/announcements.ts';
import { reminderMessage } from '../reminders/hook-reminders.ts';
import { supersededBy } from '../reminders/reminders.ts';
import { isCapped } from '../runs/continuation.ts';
import { OUTPUT_SEAM } from '../runs/output.ts';
import { STEP_SEAM } from '../steps/progress.ts';
import { stepTaskDelivered } from '../steps/steps.ts';
import { noteInterruptOfRequest, wakingMessageDelivered } from '../suspension/suspension.ts';
import { feedbackDelivered } from './feedback.ts';
import type { PendingInjection } from './state.ts';
import { awaitsVerdict, followupsMustWait, nextFollowup } from './waiting.ts';

/**
 * The pass of a seam, or null if it must wait: for a verdict (VERDICT-1, message-hooks.ts), or, unless it is `loop_exit`, for
 * announcements (ANNOUNCE-3, hooks/announcements.ts).
 * @param skipped the ids of the calls that the pass skips if it delivers a message.
 */
export function checkpoint(
  context: SessionContext,
  kind: SeamKind,
  skipped: readonly string[] = [],
): SessionEvent | null {
  if (waitsForVerdict(context, kind) || (kind !== 'loop_exit' && announcementsAreFull(context))) return null;
  const delivered = deliverable(context, kind);
  const skips = delivered.length > 0 && skipped.length > 0;
  return {
    type: 'loop_checkpoint',
    session_id: context.session_id,
    iteration: kind === 'daemon_idle_pre' || kind === 'daemon_idle_post' ? 0 : context.turn,
    kind,
    delivered: delivered.length,
    delivered_ids: delivered.map((injection) => injection.command_id),
    inbox_delivered: SEAMS[kind].feedback ? context.feedback.length : 0,
    dispatch_skipped: skips,
    ...(skips ? { skipped_call_ids: [...skipped] } : {}),
  };
}

/**
 * The pass of `pre_tool_dispatch`. If it delivers a message, it skips every call that is `proposed`, `parked` (also one in
 * doubt) or `allowed`.
 */
export function dispatchCheckpoint(context: SessionContext): SessionEvent | null {
  const unstarted = context.calls.filter(
    (row) => row.status === 'proposed' || row.status === 'parked' || row.status === 'allowed',
  );
  return checkpoint(
    context,
    'pre_tool_dispatch',
    unstarted.map((row) => row.call_id),
  );
}

/**
 * The messages that a pass of a seam delivers: those due, up to the first that awaits its verdict. Outside an aborting run
 * all due messages have their verdicts, because {@link checkpoint} makes no pass before. So only in an aborting run is the
 * list cut.
 */
export function deliverable(context: SessionContext, seam: SeamKind): readonly PendingInjection[] {
  const due = dueAt(context, seam);
  const unchecked = due.findIndex((injection) => awaitsVerdict(context, injection));
  return unchecked < 0 ? due : due.slice(0, unchecked);
}

/**
 * Whether a seam must wait because a message that is due awaits its verdict. In an aborting run it does not wait.
 */
function waitsForVerdict(context: SessionContext, seam: SeamKind): boolean {
  return !context.aborting && dueAt(context, seam).some((injection) => awaitsVerdict(context, injection));
}

/**
 * The messages that are due at a seam, in the order of the queue. Of those with a mode of the seam (`SEAMS`):
 * - none at `post_tool_dispatch` and `iteration_end` of the last turn (`isCapped`), because no model request follows
 * - otherwise all, with the drain policy `all` or at `loop_exit`
 * - otherwise (`one_at_a_time`) the first, if a model request has followed the last delivery
 * - otherwise none, because no model request has shown the last delivery yet. Exception: a message with a mode of the
 *   seam is in the list `preempting` (preempt.ts), so the next request ends before it is sent. Then the oldest message
 *   with the mode of this interrupt is due, which can be an earlier one
 */
function dueAt(context: SessionContext, seam: SeamKind): readonly PendingInjection[] {
  if (context.pending.length === 0) return NOTHING;
  if ((seam === 'post_tool_dispatch' || seam === 'iteration_end') && isCapped(context)) return NOTHING;
  const modes: readonly Mode[] = SEAMS[seam].drains;
  const matching = context.pending.filter((injection) => modes.includes(injection.mode));
  if (context.pinned?.drain.steering !== 'one_at_a_time' || seam === 'loop_exit') return matching;
  if (!context.unheard) return matching.slice(0, 1);
  const preempter = matching.find(({ command_id }) => context.preempting.includes(command_id));
  // The preempting interrupt does not overtake earlier messages of its own mode.
  return preempter ? matching.filter(({ mode }) => mode === preempter.mode).slice(0, 1) : NOTHING;
}

const NOTHING: readonly PendingInjection[] = [];

function delivery(context: SessionContext, injection: PendingInjection): SessionEvent {
  const { command_id, body, replaced_by } = injection;
  const head = { command_id, seam: context.delivering_seam, turn: context.turn };
  const tail = {
    ...(replaced_by === undefined ? {} : { replaced_by }),
    ...(injection.mode === 'audit_only' ? { audit_only: true as const } : {}),
  };
  switch (injection.kind) {
    case 'steer':
      return {
        type: 'message_injected',
        ...head,
        origin: 'steer',
        message: userText(messageText(body, injection.from)),
        ...tail,
      };
    case 'remind': {
      const older = supersededBy(context, injection);
      if (older) return { type: 'reminder_deduped', command_id: older.command_id, by: command_id };
      const pinned = injection.reminder?.preserve_on_compact ? { preserve_on_compact: true as const } : {};
      return { type: 'reminder_fired', ...head, message: reminderMessage(injection), ...pinned, ...tail };
    }
    default:
      return assertNever(injection.kind);
  }
}

/**
 * The event that puts the next queued follow-up into the transcript; null if none is queued, or if it must wait for a verdict
 * (`followupsMustWait`). Follow-ups pass no seam and have no `loop_checkpoint`: the member `seam` has the name of the
 * state, `steering_check`.
 */
export function nextFollowupEvent(context: SessionContext): SessionEvent | null {
  const followup = nextFollowup(context);
  if (!followup || followupsMustWait(context)) return null;
  return {
    type: 'message_injected',
    command_id: followup.command_id,
    origin: 'followup',
    seam: 'steering_check',
    turn: context.turn,
    message: userText(messageText(followup.body, followup.from)),
    ...(followup.replaced_by === undefined ? {} : { replaced_by: followup.replaced_by }),
  };
}

/** The length of the chain of messages between sessions (`hops`) after a delivery, if it grows. */
export function hopsAfterDelivery(
  { hops }: SessionContext,
  queue: readonly { readonly command_id: string; readonly from?: MessageSource | undefined }[],
  commandId: string,
): Partial<SessionContext> {
  const messageHops = queue.find(({ command_id }) => command_id === commandId)?.from?.hops ?? 0;
  return messageHops > hops ? { hops: messageHops } : {};
}

/** A checkpoint delivers messages: they leave the queue. {@link nextDelivery} puts them into the transcript. */
export function deliveredAt(
  context: SessionContext,
  { delivered_ids: ids, kind }: EventOf<'loop_checkpoint'>,
): Partial<SessionContext> {
  if (ids.length === 0) return {};
  return {
    delivering: context.pending.filter((injection) => ids.includes(injection.command_id)),
    delivering_seam: kind,
    pending: context.pending.filter((injection) => !ids.includes(injection.command_id)),
    ...(kind === 'loop_exit' ? {} : { unheard: true }),
    ...noteInterruptOfRequest(context, ids),
  };
}

/** A message is in the transcript: the changes depend on its seam, then on its origin. */
export function messageInjected(context: SessionContext, event: Placed<'message_injected'>): Partial<SessionContext> {
  if (event.seam === STEP_SEAM) return stepTaskDelivered(context);
  if (event.seam === OUTPUT_SEAM) return {};
  if (event.seam === HANDOFF_SEAM) return { relay: { ...context.relay, owes: null } };
  switch (event.origin) {
    case 'direct':
      return wakingMessageDelivered(context, event);
    case 'feedback':
      return feedbackDelivered(context, event.command_id);
    case 'followup':
      return { ...followupDelivered(context, event), step: null, relay: { ...context.relay, count: 0 } };
    default:
      return steeringDelivered(context, event);
  }
}

/** A follow-up is in the transcript. */
function followupDelivered(
  context: SessionContext,
  { command_id }: EventOf<'message_injected'>,
): Partial<SessionContext> {
  return {
    followups: context.followups.filter((followup) => followup.command_id !== command_id),
    ...hopsAfterDelivery(context, context.followups, command_id),
  };
}

/** A steer is in the transcript. */
function steeringDelivered(
  context: SessionContext,
  { command_id }: EventOf<'message_injected'>,
): Partial<SessionContext> {
  return {
    delivering: context.delivering.filter((injection) => injection.command_id !== command_id),
    ...hopsAfterDelivery(context, context.delivering, command_id),
  };
}

/**
 * The next event for the first delivered message that is not yet in the transcript; null if there is none. For a
 * reminder that supersedes a live one: first the `reminder_deduped` of that one.
 */
export function nextDelivery(context: SessionContext): SessionEvent | null {
  const injection = context.delivering[0];
  return injection ? delivery(context, injection) : null;
}
