/** What injections do to the context: how they wait, collapse, are taken back, and how reminders live. */
import type { EventOf } from '@coxswain/protocol';
import type { PendingInjection, SessionContext } from './context.ts';
import * as q from './queries.ts';
import { countDownAtCompaction, type LiveReminder, liveReminder } from './reminders.ts';
import { interruption } from './suspension.ts';
import { viewWithoutReminder } from './view-account.ts';

type Change = Partial<SessionContext>;

/** Behind the id of an injection in `command_ids`: what it has come to, where it neither waits nor was delivered. */
const INJECTION = '~';
const REVOKED = '~revoked';

/** How `command_ids` names an injection. */
export function injectionEntry(commandId: string): string {
  return `${commandId}${INJECTION}`;
}

/** Whether what would end what runs has to wait for its verdict first. */
export function isHeldBack(
  context: SessionContext,
  event: { readonly type: string; readonly preempt?: true | undefined },
): boolean {
  return event.type === 'steering_received' && event.preempt === true && q.isGuarded(context);
}

/** An injection waits from now on. */
export function waitsFrom(
  context: SessionContext,
  event: EventOf<'steering_received'> | EventOf<'reminder_injected'> | EventOf<'followup_received'>,
): Change {
  const { command_id, body, actor, at, dedupe_key } = event;
  const from = 'from' in event && event.from ? { from: event.from } : {};
  const head = { command_id, body, actor, at, ...(dedupe_key === undefined ? {} : { dedupe_key }), ...from };
  if (event.type === 'followup_received') {
    const begins = event.begins_run ? { begins_run: event.begins_run } : {};
    return { followups: [...context.followups, { ...head, ...begins }] };
  }
  const { mode } = event;
  if (event.type === 'steering_received') {
    const preempt = isHeldBack(context, event) ? { preempt: true as const } : {};
    // A steer that hooks have yet to let in interrupts once they have.
    const interrupts = q.isGuarded(context) ? {} : interruption(context, event);
    return { pending: [...context.pending, { ...head, kind: 'steer', mode, ...preempt, ...interrupts }] };
  }
  const { tags, ttl_turns, preserve_on_compact, propagate, role_hint } = event;
  const reminder = {
    tags,
    ...(ttl_turns === undefined ? {} : { ttl_turns }),
    preserve_on_compact,
    propagate,
    role_hint,
  };
  const waiting = { ...head, kind: 'remind', mode, reminder } as const;
  // What a hook says at once is said by the event that follows.
  if (event.direct) return { delivering: [...context.delivering, waiting] };
  return { pending: [...context.pending, { ...waiting, ...interruption(context, event) }] };
}

/** The newer of two under one key takes the place of the older. */
export function collapse(context: SessionContext, event: EventOf<'injection_collapsed'>): Change {
  return {
    pending: inPlaceOf(context.pending, event),
    followups: inPlaceOf(context.followups, event),
    command_ids: withFate(context, event.command_id, REVOKED),
  };
}

function inPlaceOf<T extends { readonly command_id: string }>(
  queue: readonly T[],
  { command_id: older, into }: EventOf<'injection_collapsed'>,
): readonly T[] {
  const newer = queue.find(({ command_id }) => command_id === into);
  if (!newer) return queue;
  return queue.flatMap((one) => (one.command_id === older ? [newer] : one === newer ? [] : [one]));
}

/** A control has taken an injection back, or given it another text. */
export function takenBack(context: SessionContext, event: EventOf<'control_outcome'>): Change {
  const { target, command_id, body } = event;
  if (event.status === 'revoked') {
    const others = (one: { readonly command_id: string }) => one.command_id !== target;
    return {
      pending: context.pending.filter(others),
      followups: context.followups.filter(others),
      command_ids: withFate(context, target, REVOKED),
    };
  }
  if (event.status !== 'replaced' || body === undefined) return {};
  // What hooks have let in was another text.
  const replaced = <T extends { readonly command_id: string }>(one: T): T =>
    one.command_id === target ? { ...one, body, replaced_by: command_id, allowed: undefined } : one;
  return { pending: context.pending.map(replaced), followups: context.followups.map(replaced) };
}

/** A reminder is in the transcript: it is shown from the next prompt on, unless it is there for the record only. */
export function fired(context: SessionContext, event: EventOf<'reminder_fired'>): Change {
  const injection = context.delivering.find(({ command_id }) => command_id === event.command_id);
  const delivering = context.delivering.filter((one) => one !== injection);
  return event.audit_only || !injection?.reminder
    ? { delivering }
    : { delivering, reminders: [...context.reminders, shownFrom(context, injection, injection.reminder)] };
}

function shownFrom(
  context: SessionContext,
  { command_id, body, actor, dedupe_key }: PendingInjection,
  reminder: NonNullable<PendingInjection['reminder']>,
): LiveReminder {
  const key = dedupe_key === undefined ? {} : { dedupe_key };
  return liveReminder({ command_id, body, actor, ...reminder, ...key }, context.run, context.turn);
}

/** The session was born with a reminder of its parent's. */
export function inherits(context: SessionContext, event: EventOf<'reminder_inherited'>): Change {
  return { reminders: [...context.reminders, liveReminder(event, 0, 0)] };
}

/** A reminder's life is over. What a compaction took is out of the view already. */
export function withoutReminder(context: SessionContext, commandId: string): Change {
  const gone = context.reminders.find(({ command_id }) => command_id === commandId);
  if (!gone) return {};
  const reminders = context.reminders.filter((one) => one !== gone);
  if (gone.due === 'compaction') return { reminders };
  return { reminders, view: viewWithoutReminder(context.view, gone.body, gone.preserve_on_compact, gone.age) };
}

/** A compaction has replaced a part of the view: everything but its newest turns, or only results in it. */
export function compacted(context: SessionContext, event: EventOf<'compaction_done'>): Change {
  const kept = Math.min(event.kept_turns, context.view.closed.length);
  const stays = ({ age }: LiveReminder) => event.strategy === 'clear_tool_results' || age <= kept;
  return { reminders: countDownAtCompaction(context.reminders, stays) };
}

/** It neither waits nor was delivered: hooks have blocked it. */
export function neverDelivered(context: SessionContext, commandId: string): Change {
  return { command_ids: withFate(context, commandId, REVOKED) };
}

function withFate(context: SessionContext, commandId: string, fate: string): readonly string[] {
  const entry = injectionEntry(commandId);
  return context.command_ids.map((known) => (known === entry ? `${commandId}${fate}` : known));
}

/** What has become of an injection, as far as the session remembers. */
export function injectionFate(
  context: SessionContext,
  commandId: string,
): 'waiting' | 'shown' | 'delivered' | 'revoked' | 'unknown' {
  const isIt = (one: { readonly command_id: string }) => one.command_id === commandId;
  if (context.pending.some(isIt) || context.followups.some(isIt)) return 'waiting';
  if (context.reminders.some(isIt)) return 'shown';
  const entry = injectionEntry(commandId);
  const known = context.command_ids.findLast((one) => one.startsWith(entry));
  if (known === undefined) return 'unknown';
  return known === entry ? 'delivered' : 'revoked';
}
