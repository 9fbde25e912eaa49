/** Every scenario, in the order in which they are recorded. */
import type { Scenario } from '../scenario.ts';
import { APPROVALS } from './approvals.ts';
import { CANCELLING } from './cancelling.ts';
import { COMPACTION } from './compaction.ts';
import { CREWS } from './crews.ts';
import { FAILURES } from './failures.ts';
import { FORKS } from './forks.ts';
import { HANDOFFS } from './handoffs.ts';
import { HOOKS } from './hooks.ts';
import { INJECTIONS } from './injections.ts';
import { LIMITS } from './limits.ts';
import { OUTPUT } from './output.ts';
import { PERSONAS } from './personas.ts';
import { PLAIN_RUNS } from './plain-runs.ts';
import { SEAM_DELIVERIES } from './seam-deliveries.ts';
import { SLEEPING } from './sleeping.ts';
import { STEERING } from './steering.ts';
import { STEPS } from './steps.ts';
import { TOLD_HOOKS } from './told-hooks.ts';

/** See the top of the file. */
export const SCENARIOS: readonly Scenario[] = [
  ...PLAIN_RUNS,
  ...SEAM_DELIVERIES,
  ...STEERING,
  ...INJECTIONS,
  ...SLEEPING,
  ...APPROVALS,
  ...CANCELLING,
  ...FAILURES,
  ...HOOKS,
  ...TOLD_HOOKS,
  ...COMPACTION,
  ...LIMITS,
  ...STEPS,
  ...FORKS,
  ...PERSONAS,
  ...CREWS,
  ...HANDOFFS,
  ...OUTPUT,
];
