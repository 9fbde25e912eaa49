/** Every scenario, in the order in which they are recorded. */
import { nearestWord } from '@coxswain/protocol';
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

/**
 * The scenarios with these names, in the order in which they are recorded; all of them without names.
 * @throws Error naming the names that no scenario has.
 */
export function scenariosNamed(names: readonly string[]): readonly Scenario[] {
  const known = SCENARIOS.map(({ name }) => name);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    const hints = unknown.map((name) => {
      const meant = nearestWord(name, known);
      return meant === null ? name : `${name} (did you mean ${meant}?)`;
    });
    throw new Error(`no scenario has the name ${hints.join(', ')}`);
  }
  return names.length === 0 ? SCENARIOS : SCENARIOS.filter(({ name }) => names.includes(name));
}
