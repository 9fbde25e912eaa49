/**
 * Budgets of a run: usage, thresholds, and the end of the run.
 *
 * BUDGET-1  A budget counts from the start of a run; in a daemon, from its last idling. After a hand-off, the limits of
 *     the new persona count from the hand-off.
 * BUDGET-2  Time does not count while a session is suspended or idle.
 * BUDGET-3  All sums are integers: tokens, nano-USD, milliseconds.
 * BUDGET-4  A threshold of a limit is reported once, and again only after the limit starts to count anew (BUDGET-1). At
 *     100 percent the run aborts at once, and ends with its results so far (`thresholdReported` in spending.ts). It aborts
 *     also if a budget does not cover another answer at the end of a turn (`closeTurn` in runs/turns.ts).
 */

import {
  BUDGET_HOOK_PERCENTAGES,
  BUDGETS,
  type Budget,
  costNanoUsd,
  type SessionEvent,
  usdOf,
} from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { compactionDue } from '../compaction/compaction.ts';
import { viewAtTurnEnd } from '../compaction/view-account.ts';
import type { BudgetCount } from './state.ts';

/** The count with a running clock. */
export function startClock(count: BudgetCount, atMs: number): BudgetCount {
  return count.running_since_ms === null ? { ...count, running_since_ms: atMs } : count;
}

/** The count with a stopped clock. */
export function stopClock(count: BudgetCount, atMs: number): BudgetCount {
  return { ...count, counted_ms: elapsedMs(count, atMs), running_since_ms: null };
}

/**
 * The time that counts against the time budget, up to `atMs`, in milliseconds (BUDGET-1, BUDGET-2). Clocks of hosts
 * differ: a running clock whose start is after `atMs` adds nothing.
 */
export function elapsedMs(count: BudgetCount, atMs: number): number {
  return count.counted_ms + (count.running_since_ms === null ? 0 : Math.max(0, atMs - count.running_since_ms));
}

/** One budget of a run: its limit, and the usage since the limit started to count. In integers (BUDGET-3). */
export interface BudgetState {
  readonly budget: Budget;
  readonly used: number;
  readonly limit: number;
}

/** The budgets for which the run has a limit, as of its newest record. */
export function budgetsOf(context: SessionContext): readonly BudgetState[] {
  if (!context.pinned?.budgets) return NONE;
  return BUDGETS.flatMap((budget) => {
    const used = usedOf(context.count, budget, context.at_ms);
    const bound = boundOf(context, budget, used);
    return bound ? [{ budget, used: used - bound.since, limit: bound.limit }] : [];
  });
}

const NONE: readonly BudgetState[] = [];

/**
 * The rest of a budget, an integer (BUDGET-3): negative if usage exceeds the limit, null if the run has no such limit.
 */
export function leftOf(context: SessionContext, budget: Budget): number | null {
  const state = budgetsOf(context).find((one) => one.budget === budget);
  return state ? state.limit - state.used : null;
}

function usedOf(count: BudgetCount, budget: Budget, atMs: number): number {
  if (budget === 'wall_time_ms') return elapsedMs(count, atMs);
  return budget === 'tokens' ? count.tokens : count.nano_usd;
}

/** A limit, and the usage of the run at which the limit started to count. */
interface Bound {
  readonly limit: number;
  readonly since: number;
}

/**
 * The limit of a budget that the run reaches first; null without one.
 * - Before a hand-off it is `own`, the stricter limit of the persona and the start: `budgets.limits` of the provision
 *   (`runLimits`, run-limits.ts in libs/session).
 * - After a hand-off it is the one with less left: `own`, which then counts from the hand-off, or `whole`, the limit of
 *   the start (`run_limits` of the provision), which counts from the start of the run. Further usage reduces both by
 *   the same amount, so the choice stays. Without `own` there is no `whole`, because `own` includes the limit of the start.
 *
 * For example, the start allows 100 tokens, and 60 are used at the hand-off: `whole` has 40 left. If the next persona allows
 * 30, the limit is its 30, counted from the hand-off. If it allows 50, the limit is the 100 of the start.
 */
function boundOf({ pinned, relay }: SessionContext, budget: Budget, used: number): Bound | null {
  const named = (limits: { readonly [key in LimitKey]?: number | undefined } | undefined) =>
    limits?.[LIMIT_KEYS[budget]];
  const own = named(pinned?.budgets?.limits);
  const whole = named(pinned?.run_limits);
  if (own === undefined) return null;
  const since = relay.since?.[SINCE_KEYS[budget]] ?? 0;
  return whole !== undefined && whole - used <= own - (used - since)
    ? { limit: whole, since: 0 }
    : { limit: own, since };
}

type LimitKey = 'tokens' | 'nano_usd' | 'wall_time_ms';

const LIMIT_KEYS = { tokens: 'tokens', usd: 'nano_usd', wall_time_ms: 'wall_time_ms' } as const;

const SINCE_KEYS = { tokens: 'tokens', usd: 'nano_usd', wall_time_ms: 'ms' } as const;

/**
 * The highest reported threshold of each budget after a change of the persona: 0 if the limit of the budget, or the usage from
 * which it counts, has changed; otherwise as before.
 */
export function reportedAfterChange(before: SessionContext, after: SessionContext): BudgetCount['told'] {
  const kept = (budget: Budget) => {
    const used = usedOf(before.count, budget, before.at_ms);
    const [old, now] = [boundOf(before, budget, used), boundOf(after, budget, used)];
    return old?.limit === now?.limit && old?.since === now?.since ? before.count.told[budget] : 0;
  };
  return { tokens: kept('tokens'), usd: kept('usd'), wall_time_ms: kept('wall_time_ms') };
}

/**
 * The thresholds to report, in percent, ascending, without duplicates: those of the run's budgets, and those of
 * OnBudgetThreshold hooks. None if the run has no budget.
 */
function thresholdsOf({ pinned, hooks }: SessionContext): readonly number[] {
  const own = pinned?.budgets?.thresholds ?? [];
  if (own.length === 0 || !hooks.some(({ point }) => point === 'OnBudgetThreshold')) return own;
  const hooked = hooks.flatMap(({ point, pct }) =>
    point !== 'OnBudgetThreshold' ? [] : pct === undefined ? BUDGET_HOOK_PERCENTAGES : [pct],
  );
  return [...new Set([...own, ...hooked])].sort((a, b) => a - b);
}

/** The event of the next reached threshold above the highest reported one of its budget, or null. */
export function reachedThreshold(context: SessionContext): SessionEvent | null {
  const thresholds = thresholdsOf(context);
  for (const state of budgetsOf(context)) {
    const percent = thresholds.find((candidate) => candidate > context.count.told[state.budget]);
    if (percent !== undefined && state.used >= thresholdAmount(state.limit, percent))
      return buildBudgetThreshold(state, percent);
  }
  return null;
}

/** The 100 percent event that ends a run early, if a budget cannot cover the minimum of another answer; or null. */
export function uncoveredAnswer(context: SessionContext): SessionEvent | null {
  for (const state of budgetsOf(context)) {
    const needed = neededNext(context, state.budget);
    if (needed > 0 && state.limit - state.used < needed) return buildBudgetThreshold(state, 100, needed);
  }
  return null;
}

// The minimum usage of another answer: its prompt has the minimum size (`leastNextPrompt`), and all of it is cached. 0
// for time, and for money without a price.
function neededNext(context: SessionContext, budget: Budget): number {
  const { pinned } = context;
  if (budget === 'wall_time_ms' || (budget === 'usd' && !pinned?.price)) return 0;
  const tokens = leastNextPrompt(context);
  if (budget === 'tokens' || !pinned?.price) return tokens;
  const { input_micro_usd, cached_input_micro_usd } = pinned.price;
  const price = { ...pinned.price, cached_input_micro_usd: Math.min(input_micro_usd, cached_input_micro_usd) };
  return costNanoUsd(price, { input_tokens: tokens, output_tokens: 0, cached_input_tokens: tokens });
}

/**
 * The time when the clock reaches the next threshold of the time budget, milliseconds since 1970; null without one, and
 * while the clock is stopped.
 */
export function nextTimeThresholdMs(context: SessionContext, count: BudgetCount, atMs: number): number | null {
  const elapsed = elapsedMs(count, atMs);
  const bound = boundOf(context, 'wall_time_ms', elapsed);
  if (!bound || count.running_since_ms === null) return null;
  const { limit, since } = bound;
  const percent = thresholdsOf(context).find((candidate) => since + thresholdAmount(limit, candidate) > elapsed);
  return percent === undefined
    ? null
    : count.running_since_ms + since + thresholdAmount(limit, percent) - count.counted_ms;
}

/** The usage that reaches a threshold: `percent` of a limit, rounded up, with exact integer arithmetic in doubles. */
function thresholdAmount(limit: number, percent: number): number {
  const hundredths = Math.floor(limit / 100);
  return hundredths * percent + Math.ceil(((limit % 100) * percent) / 100);
}

function buildBudgetThreshold({ budget, used, limit }: BudgetState, percent: number, needed?: number): SessionEvent {
  const shown = (amount: number) => (budget === 'usd' ? usdOf(amount) : amount);
  return {
    type: 'budget_threshold',
    budget,
    percent,
    used: shown(used),
    limit: shown(limit),
    ...(needed === undefined ? {} : { needed: shown(needed) }),
  };
}

/** The reason of the end by a used-up budget, for people and models. */
export function exhaustionText(event: Extract<SessionEvent, { type: 'budget_threshold' }>): string {
  const { budget, used, limit, needed } = event;
  const name = { tokens: 'token budget', usd: 'budget in USD', wall_time_ms: 'time budget' }[budget];
  const unit = budget === 'wall_time_ms' ? ' ms' : '';
  const figures = `${used}${unit} of ${limit}${unit} used`;
  return needed === undefined
    ? `the ${name} is exhausted: ${figures}`
    : `the ${name} cannot cover another model response: ${figures}, at least ${needed} more needed`;
}

/**
 * The event of {@link reachedThreshold} in a run that has started and is not ending, or null. A run that is ending records
 * none, because its end contains the usage.
 */
export function nextThresholdEvent(context: SessionContext, leaf: string): SessionEvent | null {
  if (!context.pinned?.budgets || !context.run_started || context.aborting) return null;
  return leaf === 'stopped' || leaf === 'failed' || leaf.startsWith('tearing_down') ? null : reachedThreshold(context);
}

/** The member `cost_usd` for a cost in nano-USD; none if the price is unknown, because 0 would mean "free". */
export function costMember(context: SessionContext, nanoUsd: number | null): { readonly cost_usd?: number } {
  return nanoUsd === null || !context.pinned?.price ? {} : { cost_usd: usdOf(nanoUsd) };
}

/**
 * Minimum of input tokens of the next prompt: the size of the last one. 0 if the next one may be shorter: a compaction is
 * due after the open turn, hooks or the persona shorten prompts, or a reminder may expire. Also 0 if the size of the
 * last one is unknown.
 */
export function leastNextPrompt(context: SessionContext): number {
  const { count, pinned, hooks, reminders } = context;
  if (count.prompt_tokens === 0 || pinned?.shapes_prompts) return 0;
  if (hooks.some(({ point }) => point === 'transform_context')) return 0;
  if (reminders.some(({ due, ttl_left }) => due !== undefined || ttl_left === 1)) return 0;
  return compactionDue(atTurnEnd(context)) ? 0 : count.prompt_tokens;
}

// A compaction replaces whole turns, and is considered after the end of the open turn.
function atTurnEnd(context: SessionContext): SessionContext {
  if (!context.turn_open) return context;
  const keepTurns = context.pinned?.compaction?.keep_turns ?? 0;
  return { ...context, overflows: 0, view: viewAtTurnEnd(context.view, keepTurns) };
}
