/** What the waits of a session do to its context: suspensions, a daemon's idling, and the timers that end them. */
import type { EventOf } from '@coxswain/protocol';
import { NOTHING_USED, startClock } from './budgets.ts';
import type { PendingInjection, SessionContext } from './context.ts';
import { nextIndex } from './effect-index.ts';
import type { PlacedEvent } from './evolve.ts';
import { watchClock } from './evolve-spending.ts';
import * as q from './queries.ts';
import { wakingFrom, wakingFromInterval } from './suspension.ts';

/** A suspension has taken hold. */
export function suspended(context: SessionContext, event: EventOf<'suspended'> & PlacedEvent): Partial<SessionContext> {
  const { for_ms: _, ...asked } = context.suspend ?? {};
  const head = { ...asked, since_ms: event.at_ms };
  const { effect_id, until_ms } = event;
  if (effect_id === undefined) return { suspend: null, suspension: head, idle_timer: null };
  return {
    suspend: null,
    suspension: { ...head, until_ms, timer: { id: effect_id, epoch: context.epoch } },
    idle_timer: null,
    next_effect: nextIndex(context, event) + 1,
  };
}

/** A suspension is over. */
export function resumed(context: SessionContext, event: EventOf<'resumed'>): Partial<SessionContext> {
  const { suspension, pending } = context;
  const woken = (one: PendingInjection): PendingInjection =>
    one.command_id === event.command_id ? { ...one, has_woken: true } : one;
  return {
    suspension: null,
    ...(event.cause === 'interrupt' ? { pending: pending.map(woken) } : {}),
    ...(suspension ? { waking: wakingFrom(suspension, event) } : {}),
    ...(event.cause === 'signal'
      ? { signals: context.signals.filter(({ command_id }) => command_id !== event.command_id) }
      : {}),
  };
}

/** The timer that was waited for is due. */
export function timerFired(
  context: SessionContext,
  event: EventOf<'timer_fired'> & PlacedEvent,
): Partial<SessionContext> {
  const { suspension, count } = context;
  if (event.what === 'time_budget') return watchClock(context, event, count);
  if (event.what === 'waiting_for_persona') return { persona_wait: null };
  if (event.what === 'approval') return {};
  if (event.what === 'suspension') return suspension ? { suspension: { ...suspension, expired: true } } : {};
  const intervalMs = context.pinned?.wake_interval_ms ?? 0;
  return { idle_timer: null, waking: wakingFromInterval(event.effect_id, intervalMs) };
}

/** A daemon that begins to wait asks to be woken after its interval; one for which something waits goes on at once. */
export function idling(context: SessionContext, event: PlacedEvent): Partial<SessionContext> {
  if (q.anythingWaits(context)) return watchClock(context, event, startClock(NOTHING_USED, event.at_ms));
  const intervalMs = context.pinned?.wake_interval_ms;
  if (intervalMs === undefined) return { count: NOTHING_USED };
  const index = nextIndex(context, event);
  return {
    count: NOTHING_USED,
    idle_timer: { id: `${event.n}-${index}`, epoch: context.epoch, due_at_ms: event.at_ms + intervalMs },
    next_effect: index + 1,
  };
}
