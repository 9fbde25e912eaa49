/**
 * A daemon session between its jobs: the end of a job, the start of idling, and the start of the next job. A job is the
 * work from the start of the run, or from the last idling, to the next idling. Whether a daemon idles: the states
 * `steering_check.closing`, `steering_check.resuming` and `daemon_idle.daemon_idle_pre` of `turnMachine`
 * (machine/chart.ts). What wakes it: the state `daemon_idle.waiting`, for a message by the guards `wakes`,
 * `accepted_message_wakes` and `last_hook_removed` (machine/guards.ts).
 */
import type { SessionContext } from '../../core/context.ts';
import { nextIndex, type Placed, type PlacedEvent } from '../../core/journal-place.ts';
import { startClock } from '../budgets/budgets.ts';
import { setBudgetTimer } from '../budgets/spending.ts';
import { NOTHING_USED } from '../budgets/state.ts';
import { NO_RELAY } from '../handoff/state.ts';
import { hasQueuedWork } from '../runs/continuation.ts';

/** A daemon has finished its job (the seam `daemon_idle_pre` was passed): counts start again for the next job. */
export function daemonJobEnded(context: SessionContext, event: Placed<'loop_checkpoint'>): Partial<SessionContext> {
  return {
    turns_counted: 0,
    hops: 0,
    clock_watch: null,
    step: null,
    relay: NO_RELAY,
    ...startIdlingOrJob({ ...context, relay: NO_RELAY }, event),
  };
}

/**
 * A turn starts. If the clock is stopped, the turn starts the next job of a daemon, and its clock: a suspension was
 * requested while the daemon idled, and hooks denied it or a resume withdrew it. In all other cases the clock runs.
 */
export function daemonJobStarted(context: SessionContext, event: PlacedEvent): Partial<SessionContext> {
  if (context.count.running_since_ms !== null) return {};
  return { idle_timer: null, ...setBudgetTimer(context, event, startClock(context.count, event.at_ms)) };
}

/**
 * A daemon that starts to idle sets the timer of its interval, if it has one. If queued work continues the run, the clock of
 * the next job starts instead, because the machine continues immediately.
 */
function startIdlingOrJob(context: SessionContext, event: PlacedEvent): Partial<SessionContext> {
  if (hasQueuedWork(context)) return setBudgetTimer(context, event, startClock(NOTHING_USED, event.at_ms));
  const intervalMs = context.pinned?.wake_interval_ms;
  if (intervalMs === undefined) return { count: NOTHING_USED };
  const index = nextIndex(context, event);
  return {
    count: NOTHING_USED,
    idle_timer: { id: `${event.n}-${index}`, epoch: context.epoch, due_at_ms: event.at_ms + intervalMs },
    next_effect: index + 1,
  };
}
