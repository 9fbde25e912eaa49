/**
 * The usage of a session, of its run and of the open turn.
 */

import type { Budget, Usage } from '@coxswain/protocol';
import type { OpenEffect } from '../../core/journal-place.ts';

/** No tokens. */
export const NO_USAGE: Usage = { input_tokens: 0, output_tokens: 0 };

/** The usage that counts against the budgets of a run, with that of ended children. */
export interface BudgetCount {
  readonly tokens: number;
  readonly nano_usd: number;
  /** Milliseconds up to the last stop of the clock. */
  readonly counted_ms: number;
  /** Start of the running clock, milliseconds since 1970; null while it is stopped. */
  readonly running_since_ms: number | null;
  /** The highest threshold of each budget that an event reported, in percent; 0 if none was reported. */
  readonly told: { readonly [budget in Budget]: number };
  /**
   * Input tokens of the newest answer that reported them, for `leastNextPrompt` (budgets.ts). 0: unknown, or the next
   * prompt differs.
   */
  readonly prompt_tokens: number;
}

/** No usage, with a stopped clock. */
export const NOTHING_USED: BudgetCount = {
  tokens: 0,
  nano_usd: 0,
  counted_ms: 0,
  running_since_ms: null,
  told: { tokens: 0, usd: 0, wall_time_ms: 0 },
  prompt_tokens: 0,
};

/**
 * The members of the context for usage. Costs are nano-USD; null if a price is unknown. The sums of a turn, of a run
 * and the total are without children.
 */
export interface BudgetsState {
  readonly turn_usage: Usage;
  readonly run_usage: Usage;
  readonly total_usage: Usage;
  readonly turn_cost: number | null;
  readonly run_cost: number | null;
  readonly total_cost: number | null;
  readonly count: BudgetCount;
  /** The timer of the next threshold of the time budget. */
  readonly clock_watch: (OpenEffect & { readonly due_at_ms: number }) | null;
}

/** No usage. */
export const EMPTY_BUDGETS: BudgetsState = {
  turn_usage: NO_USAGE,
  run_usage: NO_USAGE,
  total_usage: NO_USAGE,
  turn_cost: 0,
  run_cost: 0,
  total_cost: 0,
  count: NOTHING_USED,
  clock_watch: null,
};

/** The sums that restart with a run. */
export const BUDGETS_AT_RUN_START: Pick<BudgetsState, 'run_usage' | 'run_cost' | 'count'> = {
  run_usage: NO_USAGE,
  run_cost: 0,
  count: NOTHING_USED,
};

/** The sums that restart with a turn. */
export const BUDGETS_AT_TURN_START: Pick<BudgetsState, 'turn_usage' | 'turn_cost'> = {
  turn_usage: NO_USAGE,
  turn_cost: 0,
};
