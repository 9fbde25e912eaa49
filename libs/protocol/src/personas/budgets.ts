/**
 * Budgets: limits of a run in tokens, money and time, and the thresholds that it reports.
 */
import * as z from 'zod';

/** The names of the budgets, as in `limits`. */
export const BUDGETS = ['tokens', 'usd', 'wall_time_ms'] as const;
/** One budget. */
export const Budget = z.enum(BUDGETS);
export type Budget = z.infer<typeof Budget>;

/** Percentages at which a run reports its usage by default. */
export const DEFAULT_THRESHOLDS: readonly number[] = [50, 80, 95, 100];

const limits = {
  tokens: z.number().int().positive().optional(),
  nano_usd: z.number().int().positive().optional(),
  wall_time_ms: z.number().int().positive().optional(),
};

/** The pinned budgets of a run. */
export const RunBudgets = z.strictObject({
  /** The stricter limits of the persona and the start. After a hand-off they count from the hand-off. */
  limits: z.strictObject(limits),
  /** Ascending, without duplicates; the last is 100. */
  thresholds: z.array(z.number().int().min(1).max(100)).min(1),
});
export type RunBudgets = z.infer<typeof RunBudgets>;

/** Pinned after a hand-off: the limits of the start, which count from the start of the run, over all its personas. */
export const WholeRunLimits = z.strictObject({ max_turns: z.number().int().min(1).optional(), ...limits });
export type WholeRunLimits = z.infer<typeof WholeRunLimits>;
