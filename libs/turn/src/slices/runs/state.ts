/**
 * The pinned settings of a run, and its progress.
 */
import type {
  Actor,
  Failure,
  OutputCheck,
  PersonaIdentity,
  PinnedPermissions,
  PinnedPrice,
  ResolvedCompaction,
  RunBudgets,
  StartSettings,
  StopCondition,
  StopReason,
  WholeRunLimits,
} from '@coxswain/protocol';
import type { OpenEffect } from '../../core/journal-place.ts';
import type { PinnedStep } from '../steps/state.ts';

/** The pinned settings of a run. */
export interface Pinned {
  readonly persona: string;
  /** Absent in a snapshot of an earlier build. */
  readonly persona_version?: string | undefined;
  /** The identity of the persona, to which remembered rules are bound. Absent in a journal of an earlier release. */
  readonly identity?: PersonaIdentity | undefined;
  /** The absolute path of the root folder; absent in a snapshot of an earlier build. */
  readonly root?: string | undefined;
  readonly persona_fingerprint: string;
  readonly prompt_fingerprint: string;
  readonly tools_fingerprint: string;
  readonly hooks_fingerprint: string;
  readonly model: string;
  readonly permissions: PinnedPermissions;
  readonly max_turns: number;
  readonly parallel_calls: number;
  readonly drain: { readonly steering: 'all' | 'one_at_a_time'; readonly followups: 'all' | 'one_at_a_time' };
  readonly daemon: boolean;
  /** Maximum of concurrent children, and of generations below the session, if it can delegate. */
  readonly delegation?: { readonly children: number; readonly depth: number } | undefined;
  /** A person decides about a call with an unknown outcome after a crash. */
  readonly asks_unknown?: true | undefined;
  /** An external service is notified of pending approvals. */
  readonly notifies?: true | undefined;
  readonly wake_interval_ms?: number | undefined;
  readonly stop_when: readonly StopCondition[];
  readonly compaction?: ResolvedCompaction | undefined;
  /** The persona has `transform_context`: it can shorten prompts, so a prompt may be smaller than the previous one. */
  readonly shapes_prompts?: true | undefined;
  readonly budgets: RunBudgets | null;
  readonly price: PinnedPrice | null;
  readonly price_fingerprint: string;
  /** The declared steps of the persona. */
  readonly steps?: readonly PinnedStep[] | undefined;
  /** Only with an output schema: maximum of turns for repairs. */
  readonly output_repairs?: number | undefined;
  /** The allowed targets of hand-offs. */
  readonly handoffs?: readonly string[] | undefined;
  /** The limits of the start for the whole run, after a hand-off. */
  readonly run_limits?: WholeRunLimits | undefined;
}

/**
 * Settings that the next provision must resolve again although they are pinned. A new persona brings its model and
 * mode.
 */
export type Repins = 'model' | 'mode' | 'model_and_mode' | 'persona';

/** The check of the newest answer against the output schema, and its repairs. */
export interface OutputProgress {
  /** The validation of the open turn's answer; null without an answer, or with calls. */
  readonly check: OutputCheck | null;
  /** Whether the rejection of that answer is recorded. */
  readonly rejected: boolean;
  /** Whether the repair message about it was recorded. */
  readonly told: boolean;
  /** Repair turns so far (OUTPUT-2, output.ts). */
  readonly repairs: number;
}

/** The members of the context for the progress of the run. */
export interface RunsState {
  /** Runs so far, 0 before the first record. */
  readonly run: number;
  /** Whether the `agent_start` of the newest run is recorded. */
  readonly run_started: boolean;
  readonly settings: StartSettings | null;
  readonly pinned: Pinned | null;
  /** The prompt of the run, as hooks get it. */
  readonly prompt: string;
  readonly turn: number;
  readonly turn_open: boolean;
  /** Turns since the start of the run or, in a daemon, its last idling: max_turns limits these. */
  readonly turns_counted: number;
  /**
   * A preempting interrupt ended the open turn's answer early. What this causes: `openTurnContinuesRun`
   * (continuation.ts).
   */
  readonly cut_short: boolean;
  /** Number of messages that the last seam of the open turn delivered: they continue the run. */
  readonly delivered_at_end: number;
  readonly provision: OpenEffect | null;
  readonly repins: Repins | null;
  /** The open model call. `preempted`: a preempting interrupt has ordered its end. */
  readonly model: (OpenEffect & { readonly restarts: number; readonly preempted?: true | undefined }) | null;
  /** The open effect that closes the tools of the run. */
  readonly closing: OpenEffect | null;
  /** The open call of predicates about the turn. */
  readonly stop_check: (OpenEffect & { readonly predicates: readonly string[] }) | null;
  /** Whether predicates have answered about the open turn, and whether a stop condition is true after it. */
  readonly stop_checked: boolean;
  readonly stop_held: boolean;
  /** The run was cancelled, has failed, or has used up a budget: no new work may start, and open work is aborted. */
  readonly aborting: boolean;
  readonly stop_reason: StopReason | null;
  /** The reason of the cancel, or the text about the used-up budget (`exhaustionText`, budgets.ts). */
  readonly cancel_reason: string | null;
  /** The sender of the cancel, if its command names one. */
  readonly cancel_actor: Actor | null;
  /** The first failure, and the number of its record. */
  readonly failure: Failure | null;
  readonly failed_at: number | null;
  /** Null without an output schema, and before the run's first complete answer without calls. */
  readonly output: OutputProgress | null;
}

/** No run so far. */
export const EMPTY_RUNS: RunsState = {
  run: 0,
  run_started: false,
  settings: null,
  pinned: null,
  prompt: '',
  turn: 0,
  turn_open: false,
  turns_counted: 0,
  cut_short: false,
  delivered_at_end: 0,
  provision: null,
  repins: null,
  model: null,
  closing: null,
  stop_check: null,
  stop_checked: false,
  stop_held: false,
  aborting: false,
  stop_reason: null,
  cancel_reason: null,
  cancel_actor: null,
  failure: null,
  failed_at: null,
  output: null,
};

/** The values at the start of a run. */
export const RUNS_AT_RUN_START: Partial<RunsState> = {
  run_started: false,
  turn: 0,
  turn_open: false,
  turns_counted: 0,
  stop_held: false,
  cut_short: false,
  delivered_at_end: 0,
  aborting: false,
  stop_reason: null,
  cancel_reason: null,
  cancel_actor: null,
  failure: null,
  failed_at: null,
};

/** The values at the start of a turn. */
export const RUNS_AT_TURN_START: Partial<RunsState> = {
  turn_open: true,
  stop_checked: false,
  stop_held: false,
  cut_short: false,
  delivered_at_end: 0,
};

/** The end of a run leaves none of these effects open. */
export const RUNS_AT_RUN_END: Partial<RunsState> = { provision: null, model: null, closing: null, stop_check: null };
