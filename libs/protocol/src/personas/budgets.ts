/** Budgets: what a run may use up of tokens, money and time, and the parts of it at which it says so. */
import * as z from 'zod';

/** The budgets by name, as `limits` name them. */
export const BUDGETS = ['tokens', 'usd', 'wall_time_ms'] as const;
/** One budget. */
export const Budget = z.enum(BUDGETS);
/** See {@link Budget}. */
export type Budget = z.infer<typeof Budget>;

/** At which percentages a run says how much it has used, where its persona does not say. */
export const DEFAULT_THRESHOLDS: readonly number[] = [50, 80, 95, 100];

const limits = {
  tokens: z.number().int().positive().optional(),
  nano_usd: z.number().int().positive().optional(),
  wall_time_ms: z.number().int().positive().optional(),
};

/** The budgets of a run, as it has pinned them. */
export const RunBudgets = z.strictObject({
  limits: z.strictObject(limits),
  /** Ascending, each once; the last is 100. */
  thresholds: z.array(z.number().int().min(1).max(100)).min(1),
});
/** See {@link RunBudgets}. */
export type RunBudgets = z.infer<typeof RunBudgets>;

/** What the start allows a run, whichever personas take it over on the way. */
export const WholeRunLimits = z.strictObject({ max_turns: z.number().int().min(1).optional(), ...limits });
/** See {@link WholeRunLimits}. */
export type WholeRunLimits = z.infer<typeof WholeRunLimits>;
