/**
 * Live reminders: delivered or inherited, and shown by every prompt. One is live until its turns are over, a compaction
 * removes it, a newer one with its dedupe key replaces it, or a sender revokes it. When it is delivered: `dueAt`
 * (injections/seam-passes.ts).
 *
 * REMINDER-1  A turn counts for a reminder only if the prompt of the turn showed it. So a turn in which a reminder
 *     arrives after the prompt does not count.
 * REMINDER-2  A due expiry is recorded by `reminder_expired`, in the record that causes it. A replaced reminder ends
 *     with `reminder_deduped`.
 */

import type { EventOf, Mode, ReminderFields } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { viewWithoutReminder } from '../compaction/view-account.ts';
import type { PendingInjection } from '../injections/state.ts';
import type { LiveReminder } from './state.ts';

type Live = readonly LiveReminder[];

/** A reminder that has entered the transcript. */
function liveReminder(
  from: ReminderFields & Pick<LiveReminder, 'command_id' | 'body' | 'actor'>,
  run: number,
  turn: number,
): LiveReminder {
  const { command_id, body, actor, tags, dedupe_key, ttl_turns, preserve_on_compact, propagate, role_hint } = from;
  return {
    command_id,
    body,
    ...(actor ? { actor } : {}),
    tags,
    ...(dedupe_key === undefined ? {} : { dedupe_key }),
    ...(ttl_turns === undefined ? {} : { ttl_turns, ttl_left: ttl_turns }),
    preserve_on_compact,
    propagate,
    role_hint,
    run,
    turn,
    age: 0,
    shown: false,
  };
}

/** The live reminders after the seam `post_compact`: the prompt of the model request that follows shows all of them. */
export function showReminders(live: Live): Live {
  return live.every(({ shown }) => shown) ? live : live.map((one) => (one.shown ? one : { ...one, shown: true }));
}

/** The live reminders after the end of a turn. */
export function countDownAtTurnEnd(live: Live): Live {
  return live.length === 0 ? live : live.map((one) => countDown({ ...one, age: one.age + 1 }));
}

/**
 * The live reminders after a compaction. Those in the replaced part of the view are due to expire, unless they are
 * preserved. For the others the compaction counts as a turn.
 * @param stays whether a reminder is not in the replaced part.
 */
export function countDownAtCompaction(live: Live, stays: (reminder: LiveReminder) => boolean): Live {
  return live.map((one) => (one.preserve_on_compact || stays(one) ? countDown(one) : { ...one, due: 'compaction' }));
}

function countDown(one: LiveReminder): LiveReminder {
  if (one.ttl_left === undefined || !one.shown || one.due) return one;
  const left = one.ttl_left - 1;
  return left > 0 ? { ...one, ttl_left: left } : { ...one, ttl_left: 0, due: 'ttl' };
}

/** The event of the next due expiry (REMINDER-2), or null. */
export function nextExpiry(context: SessionContext): EventOf<'reminder_expired'> | null {
  for (const { command_id, due } of context.reminders)
    if (due) return { type: 'reminder_expired', command_id, reason: due };
  return null;
}

/**
 * The live reminder that a newer one with its dedupe key replaces, or undefined. A reminder with `audit_only` is never
 * shown, so it replaces none.
 */
export function supersededBy(
  context: SessionContext,
  newer: Pick<PendingInjection, 'command_id' | 'dedupe_key'> & { readonly mode?: Mode | undefined },
) {
  if (newer.dedupe_key === undefined || newer.mode === 'audit_only') return undefined;
  return context.reminders.find(
    (one) => one.dedupe_key === newer.dedupe_key && one.command_id !== newer.command_id && !one.due,
  );
}

/**
 * The live reminders that a child inherits, as events for the child's journal. Those for direct children alone (`session`)
 * get `none`, so that a grandchild does not inherit them.
 */
export function inheritedReminders(
  context: Pick<SessionContext, 'session_id' | 'reminders'>,
): EventOf<'reminder_inherited'>[] {
  return context.reminders
    .filter(({ propagate, due }) => !due && (propagate === 'all' || propagate === 'session'))
    .map(({ command_id, body, tags, dedupe_key, ttl_left, preserve_on_compact, propagate, role_hint }) => ({
      type: 'reminder_inherited',
      command_id,
      from: context.session_id,
      body,
      tags: [...tags],
      ...(dedupe_key === undefined ? {} : { dedupe_key }),
      ...(ttl_left === undefined ? {} : { ttl_turns: ttl_left }),
      preserve_on_compact,
      propagate: propagate === 'all' ? 'all' : 'none',
      role_hint,
    }));
}

/** A reminder is in the transcript. It is live, unless it is only recorded (`audit_only`). */
export function fired(context: SessionContext, event: EventOf<'reminder_fired'>): Partial<SessionContext> {
  const injection = context.delivering.find(({ command_id }) => command_id === event.command_id);
  const delivering = context.delivering.filter((one) => one !== injection);
  return event.audit_only || !injection?.reminder
    ? { delivering }
    : { delivering, reminders: [...context.reminders, liveFrom(context, injection, injection.reminder)] };
}

function liveFrom(
  context: SessionContext,
  { command_id, body, actor, dedupe_key }: PendingInjection,
  reminder: NonNullable<PendingInjection['reminder']>,
): LiveReminder {
  const key = dedupe_key === undefined ? {} : { dedupe_key };
  return liveReminder({ command_id, body, actor, ...reminder, ...key }, context.run, context.turn);
}

/** A reminder of the parent is live in this child. */
export function reminderInherited(
  context: SessionContext,
  event: EventOf<'reminder_inherited'>,
): Partial<SessionContext> {
  return { reminders: [...context.reminders, liveReminder(event, 0, 0)] };
}

/**
 * Removes a live reminder. The account of the view shrinks by it, unless a compaction has removed it from there already.
 */
export function withoutReminder(context: SessionContext, commandId: string): Partial<SessionContext> {
  const gone = context.reminders.find(({ command_id }) => command_id === commandId);
  if (!gone) return {};
  const reminders = context.reminders.filter((one) => one !== gone);
  if (gone.due === 'compaction') return { reminders };
  return { reminders, view: viewWithoutReminder(context.view, gone.body, gone.preserve_on_compact, gone.age) };
}

/**
 * A compaction has replaced the part of the view before the kept turns. The strategy `clear_tool_results` replaces no
 * reminder.
 */
export function remindersAfterCompaction(
  context: SessionContext,
  event: EventOf<'compaction_done'>,
): Partial<SessionContext> {
  const kept = Math.min(event.kept_turns, context.view.closed.length);
  const stays = ({ age }: LiveReminder) => event.strategy === 'clear_tool_results' || age <= kept;
  return { reminders: countDownAtCompaction(context.reminders, stays) };
}

/**
 * A reminder is no longer live. The next prompt may be shorter than the last one, so the size of the last one
 * (`prompt_tokens`) is dropped.
 */
export function reminderEnded(
  context: SessionContext,
  event: EventOf<'reminder_deduped'> | EventOf<'reminder_expired'>,
): Partial<SessionContext> {
  return { ...withoutReminder(context, event.command_id), count: { ...context.count, prompt_tokens: 0 } };
}
