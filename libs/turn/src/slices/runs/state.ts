/** What a session has pinned for its run, and how far the run is. */
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
import type { OpenEffect } from '../../core/place.ts';
import type { PinnedStep } from '../steps/state.ts';

/** What a session has pinned for its run. */
export interface Pinned {
  readonly persona: string;
  /** Absent in a snapshot of an earlier build. */
  readonly persona_version?: string | undefined;
  /** What remembered rules are bound to. Absent in a journal of an earlier version. */
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
  /** How many children at once, and generations below, where it can delegate. */
  readonly delegation?: { readonly children: number; readonly depth: number } | undefined;
  /** A person is asked about a call whose outcome a crash has left unknown. */
  readonly asks_unknown?: true | undefined;
  /** An external service is notified when a call waits for a person. */
  readonly notifies?: true | undefined;
  readonly wake_interval_ms?: number | undefined;
  readonly stop_when: readonly StopCondition[];
  readonly compaction?: ResolvedCompaction | undefined;
  /** The persona leaves something out of its prompts, so that one may be shorter than the one before. */
  readonly shapes_prompts?: true | undefined;
  readonly budgets: RunBudgets | null;
  readonly price: PinnedPrice | null;
  readonly price_fingerprint: string;
  /** What the persona declares of its work. */
  readonly steps?: readonly PinnedStep[] | undefined;
  /** Only where the final answer has a schema: turns that may be spent on repairing it. */
  readonly output_repairs?: number | undefined;
  /** Whom it may hand the session to. */
  readonly handoffs?: readonly string[] | undefined;
  /** What the start allows the whole run, where the persona has taken it over. */
  readonly run_limits?: WholeRunLimits | undefined;
}

/** What the next provisioning is to choose anew, whatever is pinned. With the persona go its model and its mode. */
export type Repins = 'model' | 'mode' | 'model_and_mode' | 'persona';

/** How far a run is with its final answer. Absent in sessions without an output schema. */
export interface OutputProgress {
  /** What the open turn's answer came to; null where it has none yet, or asks for calls. */
  readonly check: OutputCheck | null;
  /** The rejection of that answer is recorded. */
  readonly rejected: boolean;
  /** The model was told of it. */
  readonly told: boolean;
  /** Repair turns so far (SO2). */
  readonly repairs: number;
}

/** The members of the context that say how far the run is. */
export interface RunsState {
  /** Runs so far, 0 before the first record. */
  readonly run: number;
  readonly run_started: boolean;
  readonly settings: StartSettings | null;
  readonly pinned: Pinned | null;
  /** The prompt that opened the run, as hooks are shown it. */
  readonly prompt: string;
  readonly turn: number;
  readonly turn_open: boolean;
  /** Turns since the run began or last idled: what max_turns counts. */
  readonly turns_counted: number;
  /** The open turn's answer was cut short by an interrupt: whatever becomes of that, the model is asked again. */
  readonly cut_short: boolean;
  /** Delivered at the last seam of the open turn: the run goes on. */
  readonly delivered_at_end: number;
  readonly provision: OpenEffect | null;
  readonly repins: Repins | null;
  /** `preempted`: an interrupt came that does not wait for the answer. */
  readonly model: (OpenEffect & { readonly restarts: number; readonly preempted?: true | undefined }) | null;
  readonly closing: OpenEffect | null;
  /** Predicates are being asked about the open turn. */
  readonly stop_check: (OpenEffect & { readonly predicates: readonly string[] }) | null;
  /** Whether they have been asked, and whether a stop condition holds after this turn. */
  readonly stop_checked: boolean;
  readonly stop_held: boolean;
  /** Cancelled or failed: nothing new may start. */
  readonly aborting: boolean;
  readonly stop_reason: StopReason | null;
  readonly cancel_reason: string | null;
  /** Who cancelled the run, where a command did and named its sender. */
  readonly cancel_actor: Actor | null;
  readonly failure: Failure | null;
  readonly failed_at: number | null;
  /** How far the run is with its final answer; null without an output schema. */
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

/** What a run begins with, whatever the run before came to. */
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

/** What a turn begins with. */
export const RUNS_AT_TURN_START: Partial<RunsState> = {
  turn_open: true,
  stop_checked: false,
  stop_held: false,
  cut_short: false,
  delivered_at_end: 0,
};

/** The end of a run leaves no effect of the run open. */
export const RUNS_AT_RUN_END: Partial<RunsState> = { provision: null, model: null, closing: null, stop_check: null };
