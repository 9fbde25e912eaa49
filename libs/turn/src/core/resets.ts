/**
 * Resets: members of the context that get a fixed value at the start of a run (`prompt_received`), at the start of a
 * turn (`turn_start`) or at the end of a run (`agent_end`). The state.ts file of each slice lists them. `evolve`
 * applies a reset before the other changes of its event. A crash or a change of the host resets nothing: `sessionOwned`
 * (runs/owners.ts).
 *
 * Members without a reset keep their values, unless one of these events itself sets them. Examples that outlive a run:
 * settings, also pinned ones, queues, reminders, the sums of the session, jobs, children and command ids.
 */

import { BUDGETS_AT_RUN_START, BUDGETS_AT_TURN_START } from '../slices/budgets/state.ts';
import { CALLS_AT_RUN_START, CALLS_AT_TURN_START } from '../slices/calls/state.ts';
import { COMPACTION_AT_RUN_END, COMPACTION_AT_TURN_START } from '../slices/compaction/state.ts';
import { HANDOFF_AT_RUN_START } from '../slices/handoff/state.ts';
import { HOOKS_AT_RUN_END, HOOKS_AT_RUN_START } from '../slices/hooks/state.ts';
import { INJECTIONS_AT_RUN_OR_TURN_START } from '../slices/injections/state.ts';
import { RUNS_AT_RUN_END, RUNS_AT_RUN_START, RUNS_AT_TURN_START } from '../slices/runs/state.ts';
import { STALLS_AT_RUN_START } from '../slices/stalls/state.ts';
import { STEPS_AT_RUN_START } from '../slices/steps/state.ts';
import {
  SUSPENSION_AT_RUN_END,
  SUSPENSION_AT_RUN_START,
  SUSPENSION_AT_TURN_START,
} from '../slices/suspension/state.ts';
import type { SessionContext } from './context.ts';

type Reset = Partial<SessionContext>;

/** The values of members at the start of every run. */
export const AT_RUN_START: readonly Reset[] = [
  RUNS_AT_RUN_START,
  CALLS_AT_RUN_START,
  HOOKS_AT_RUN_START,
  INJECTIONS_AT_RUN_OR_TURN_START,
  BUDGETS_AT_RUN_START,
  STEPS_AT_RUN_START,
  HANDOFF_AT_RUN_START,
  SUSPENSION_AT_RUN_START,
  STALLS_AT_RUN_START,
];

/** The values of members at the start of every turn. */
export const AT_TURN_START: readonly Reset[] = [
  RUNS_AT_TURN_START,
  CALLS_AT_TURN_START,
  INJECTIONS_AT_RUN_OR_TURN_START,
  COMPACTION_AT_TURN_START,
  BUDGETS_AT_TURN_START,
  SUSPENSION_AT_TURN_START,
];

/** The values of members at the end of every run. */
export const AT_RUN_END: readonly Reset[] = [
  RUNS_AT_RUN_END,
  HOOKS_AT_RUN_END,
  COMPACTION_AT_RUN_END,
  SUSPENSION_AT_RUN_END,
];
