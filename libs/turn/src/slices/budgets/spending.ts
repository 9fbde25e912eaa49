/**
 * The changes of the context by usage (tokens, money and time), and the end of the run at 100 percent
 * (`thresholdReported`). Limits and reached thresholds: `reachedThreshold` (budgets.ts).
 */

import { addUsage, costNanoUsd, type EventOf, type Usage } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { nextIndex, type PlacedEvent } from '../../core/journal-place.ts';
import { exhaustionText, nextTimeThresholdMs, startClock, stopClock } from './budgets.ts';
import type { BudgetCount } from './state.ts';

/** Adds the usage of an answer, and its cost, to the sums (turn, run, session) and to `count`. */
export function answerUsageAdded(context: SessionContext, usage: Usage): Partial<SessionContext> {
  // An answer without a usage report, such as an aborted one, has 0 input tokens.
  return usageAdded(context, usage, usage.input_tokens > 0 ? usage.input_tokens : context.count.prompt_tokens);
}

/**
 * Adds the usage of a compaction, if its outcome has one, and sets `prompt_tokens`.
 * @param promptTokens the size of the session's last prompt; 0 if the next prompt differs. `usage` does not have it:
 * its input tokens are those of the compaction's own prompt.
 */
export function compactionUsageAdded(
  context: SessionContext,
  usage: Usage | undefined,
  promptTokens: number,
): Partial<SessionContext> {
  return usage
    ? usageAdded(context, usage, promptTokens)
    : { count: { ...context.count, prompt_tokens: promptTokens } };
}

function usageAdded(context: SessionContext, usage: Usage, promptTokens: number): Partial<SessionContext> {
  const { count } = context;
  const price = context.pinned?.price ?? null;
  const cost = price ? costNanoUsd(price, usage) : null;
  const add = (sum: number | null) => (sum === null || cost === null ? null : sum + cost);
  return {
    turn_usage: addUsage(context.turn_usage, usage),
    run_usage: addUsage(context.run_usage, usage),
    total_usage: addUsage(context.total_usage, usage),
    turn_cost: add(context.turn_cost),
    run_cost: add(context.run_cost),
    total_cost: add(context.total_cost),
    count: {
      ...count,
      tokens: count.tokens + usage.input_tokens + usage.output_tokens,
      nano_usd: count.nano_usd + (cost ?? 0),
      prompt_tokens: promptTokens,
    },
  };
}

/** Starts the run's clock, and sets its timer. */
export function clockStarted(context: SessionContext, event: PlacedEvent): Partial<SessionContext> {
  return setBudgetTimer(context, event, startClock(context.count, event.at_ms));
}

/** Stops the run's clock, and removes its timer. */
export function clockStopped(context: SessionContext, event: PlacedEvent): Partial<SessionContext> {
  return { count: stopClock(context.count, event.at_ms), clock_watch: null };
}

/**
 * Sets the timer of the next threshold of the time budget, or removes it. Thresholds are reported in records. A waiting
 * run makes no record, so the timer causes one.
 */
export function setBudgetTimer(
  context: SessionContext,
  event: PlacedEvent,
  count: BudgetCount,
): Partial<SessionContext> {
  const due_at_ms = nextTimeThresholdMs(context, count, event.at_ms);
  if (due_at_ms === null) return { count, clock_watch: null };
  const index = nextIndex(context, event);
  return { count, clock_watch: { id: `${event.n}-${index}`, epoch: context.epoch, due_at_ms }, next_effect: index + 1 };
}

/**
 * As {@link setBudgetTimer}, after a change of limits or thresholds: a timer that is set for the same time stays.
 */
export function adjustBudgetTimer(
  context: SessionContext,
  event: PlacedEvent,
  count: BudgetCount,
): Partial<SessionContext> {
  const isSame = nextTimeThresholdMs(context, count, event.at_ms) === (context.clock_watch?.due_at_ms ?? null);
  return isSame ? { count } : setBudgetTimer(context, event, count);
}

/**
 * A threshold was reported. At 100 percent the run aborts: open work gets an abort order (`runAbort`, core/effects.ts), and
 * `endCallNotInFlight` (calls/batch.ts) ends the calls that are not in flight.
 */
export function thresholdReported(
  context: SessionContext,
  event: EventOf<'budget_threshold'>,
): Partial<SessionContext> {
  const { count } = context;
  const noted = { count: { ...count, told: { ...count.told, [event.budget]: event.percent } } };
  return event.percent < 100
    ? noted
    : { ...noted, aborting: true, stop_reason: 'budget_exceeded', cancel_reason: exhaustionText(event) };
}
