/**
 * The timers that a session waits for, composed of the timers of each slice, and what a fired one causes. The host stores
 * them, and retries until the store acknowledges each: `StoreWrites` (timer-and-rule-writes.ts in libs/session).
 */

import type { EventOf, TimerInput } from '@coxswain/protocol';
import type { MachineState } from '../machine/state.ts';
import { leafOf } from '../machine/state.ts';
import { afterApprovalExpiry, approvalTimers } from '../slices/approvals/approvals.ts';
import { setBudgetTimer } from '../slices/budgets/spending.ts';
import { afterPersonaWaitExpiry, personaWait } from '../slices/steps/persona-waits.ts';
import { wakingFromInterval } from '../slices/suspension/suspension.ts';
import type { SessionContext } from './context.ts';
import { type Decision, events } from './decision.ts';
import type { TimerEffect } from './effect.ts';
import type { PlacedEvent } from './journal-place.ts';

/**
 * Decides a due timer. It counts, however late it fires, if {@link awaitedTimers} still lists it with the same due time. Any
 * other timer is ignored, so timers need no cancellation.
 */
export function decideTimer(state: MachineState, input: TimerInput): Decision {
  const timer = awaitedTimers(state).find(({ id }) => id === input.effect_id);
  if (timer?.dueAtMs !== input.due_at_ms) return { kind: 'ignored', reason: `no pending timer ${input.effect_id}` };
  return events(
    { type: 'timer_fired', effect_id: timer.id, what: timer.what },
    ...(timer.what === 'approval' ? afterApprovalExpiry(state.context, timer.id) : []),
    ...(timer.what === 'waiting_for_persona' ? afterPersonaWaitExpiry(state.context) : []),
  );
}

/** All awaited timers: {@link sessionTimer}, and those of approvals that expire. */
export function awaitedTimers(state: MachineState): readonly TimerEffect[] {
  const timer = sessionTimer(state);
  const expiries = approvalTimers(state.context);
  return timer ? [timer, ...expiries] : expiries;
}

/**
 * The awaited timer of the session, without those of approvals; null without one. Two may exist, and it is the one that is
 * due first:
 * - the timer of a model step that waits for its persona
 * - the timer of the suspension, of the idle daemon, or of the time budget. Of these at most one exists, because the
 *   clock of the time budget stops during suspension and idling
 */
export function sessionTimer(state: MachineState): TimerEffect | null {
  const [other, persona] = [suspensionIdleOrBudgetTimer(state), personaTimer(state)];
  return persona && (!other || persona.dueAtMs < other.dueAtMs) ? persona : other;
}

function personaTimer({ context }: MachineState): TimerEffect | null {
  const timer = context.aborting ? undefined : personaWait(context)?.timer;
  if (!timer) return null;
  const { id, epoch, due_at_ms: dueAtMs } = timer;
  return { kind: 'timer', id, epoch, abort: null, dueAtMs, what: 'waiting_for_persona' };
}

function suspensionIdleOrBudgetTimer(state: MachineState): TimerEffect | null {
  const { suspension, idle_timer, clock_watch, aborting } = state.context;
  if (clock_watch) {
    const { id, epoch, due_at_ms: dueAtMs } = clock_watch;
    return aborting ? null : { kind: 'timer', id, epoch, abort: null, dueAtMs, what: 'time_budget' };
  }
  if (!suspension?.timer && !idle_timer) return null;
  const leaf = leafOf(state);
  if (leaf === 'suspended.parked' && suspension?.timer && suspension.until_ms !== undefined) {
    return { kind: 'timer', ...suspension.timer, abort: null, dueAtMs: suspension.until_ms, what: 'suspension' };
  }
  return leaf === 'daemon_idle.waiting' && idle_timer
    ? {
        kind: 'timer',
        id: idle_timer.id,
        epoch: idle_timer.epoch,
        abort: null,
        dueAtMs: idle_timer.due_at_ms,
        what: 'wake_interval',
      }
    : null;
}

/** An awaited timer has fired. */
export function timerFired(
  context: SessionContext,
  event: EventOf<'timer_fired'> & PlacedEvent,
): Partial<SessionContext> {
  const { suspension, count } = context;
  if (event.what === 'time_budget') return setBudgetTimer(context, event, count);
  if (event.what === 'waiting_for_persona') return { persona_wait: null };
  if (event.what === 'approval') return {};
  if (event.what === 'suspension') return suspension ? { suspension: { ...suspension, expired: true } } : {};
  const intervalMs = context.pinned?.wake_interval_ms ?? 0;
  return { idle_timer: null, waking: wakingFromInterval(event.effect_id, intervalMs) };
}
