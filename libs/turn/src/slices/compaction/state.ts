/**
 * The account of the model's view, and the open compaction.
 */
import type { CompactionMode, CompactionStrategy } from '@coxswain/protocol';
import type { OpenEffect } from '../../core/journal-place.ts';

/** The compaction of a turn: due, running or complete. Sizes are in tokens. */
export interface OpenCompaction {
  readonly mode: CompactionMode;
  readonly strategy: CompactionStrategy;
  readonly tokens_before: number;
  readonly window: number;
  readonly reserve: number;
  readonly kept_turns: number;
  /** A hook vetoed it. */
  readonly vetoed?: true | undefined;
  /** Number of replaced and of remaining messages, once it is complete. */
  readonly done?: { readonly archived: number; readonly remaining: number } | undefined;
}

/** Consecutive messages of the view. Token counts are estimates. */
export interface ViewPart {
  readonly messages: number;
  readonly tokens: number;
  /**
   * Messages among them that are pinned until the next run: steers, and tasks of steps (`pinOf`, view-account.ts). Snapshots
   * contain the name `steers`, which is older than the second kind.
   */
  readonly steers: number;
  readonly steer_tokens: number;
  /** Messages among them that are pinned for the session: reminders with `preserve_on_compact`. */
  readonly preserved: number;
  readonly preserved_tokens: number;
  /** Results among them that a stub can replace. */
  readonly results: number;
  readonly result_tokens: number;
}

/** Counts of messages and tokens in each part of the model's view. */
export interface ViewAccount {
  readonly system_tokens: number;
  readonly tool_tokens: number;
  /** Estimated size of the next prompt: the provider's report on the last one, plus later messages. */
  readonly tokens: number;
  /** Everything before `closed`. It starts with the summary or the notes, if there are any. */
  readonly older: ViewPart;
  readonly has_summary: boolean;
  /** The newest closed turns, at most as many as a compaction keeps. */
  readonly closed: readonly ViewPart[];
  /** Messages since the last turn_end. */
  readonly open: ViewPart;
  /** Number of compactions that changed the view, and of model steps of all compactions. */
  readonly passes: number;
  readonly steps: number;
  /** After an insufficient or skipped compaction, the prompt size above which the next one may start; otherwise 0. */
  readonly next_pass_at: number;
  /** The size after the last compaction is only estimated: the provider's next report corrects it. */
  readonly settling: boolean;
  /** The smallest estimate of a prompt that the provider refused since the persona changed; 0: none. */
  readonly refused_at: number;
}

/** No messages. */
export const EMPTY_PART: ViewPart = {
  messages: 0,
  tokens: 0,
  steers: 0,
  steer_tokens: 0,
  preserved: 0,
  preserved_tokens: 0,
  results: 0,
  result_tokens: 0,
};

/** The account of an empty view. */
export const EMPTY_VIEW: ViewAccount = {
  system_tokens: 0,
  tool_tokens: 0,
  tokens: 0,
  older: EMPTY_PART,
  has_summary: false,
  closed: [],
  open: EMPTY_PART,
  passes: 0,
  steps: 0,
  next_pass_at: 0,
  settling: false,
  refused_at: 0,
};

/** The members of the context for the model's view. */
export interface CompactionState {
  /** The model's view in numbers. */
  readonly view: ViewAccount;
  /** The compaction of the open turn, from the seam `pre_compact` to the seam `post_compact`. */
  readonly compaction: OpenCompaction | null;
  /** How often the open turn continued with a compaction after the provider refused its prompt: 0 or 1. */
  readonly overflows: number;
  /** The open model step of `compaction`. */
  readonly compacting: (OpenEffect & { readonly restarts: number }) | null;
}

/** An empty view. */
export const EMPTY_COMPACTION: CompactionState = { view: EMPTY_VIEW, compaction: null, overflows: 0, compacting: null };

/** Each turn considers a new compaction. */
export const COMPACTION_AT_TURN_START: Pick<CompactionState, 'compaction' | 'overflows'> = {
  overflows: 0,
  compaction: null,
};

/** The end of a run leaves no model step open. */
export const COMPACTION_AT_RUN_END: Pick<CompactionState, 'compacting'> = { compacting: null };
