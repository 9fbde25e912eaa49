/** The account of what a model is shown, and the open compaction. */
import type { CompactionMode, CompactionStrategy } from '@coxswain/protocol';
import type { OpenEffect } from '../../core/place.ts';

/** A compaction that is due or under way. */
export interface Pass {
  readonly mode: CompactionMode;
  readonly strategy: CompactionStrategy;
  readonly tokens_before: number;
  readonly window: number;
  readonly reserve: number;
  readonly kept_turns: number;
  /** A hook refused it. */
  readonly vetoed?: true | undefined;
  /** What it has done, once it has. */
  readonly done?: { readonly archived: number; readonly remaining: number } | undefined;
}

/** Messages that follow each other in the view. Tokens are estimates. */
export interface ViewPart {
  readonly messages: number;
  readonly tokens: number;
  /** Of these, steers of the open run: they stay word for word as long as it goes on. */
  readonly steers: number;
  readonly steer_tokens: number;
  /** Of these, reminders that a compaction leaves as they are. */
  readonly preserved: number;
  readonly preserved_tokens: number;
  /** Of these, results that a stub could stand for. */
  readonly results: number;
  readonly result_tokens: number;
}

/** See the top of the file. */
export interface ViewAccount {
  readonly system_tokens: number;
  readonly tool_tokens: number;
  /** What the next prompt is thought to have: what the provider reported of the last one, and what came since. */
  readonly tokens: number;
  /** Everything before `closed`. It begins with the summary or the notes, where there are any. */
  readonly older: ViewPart;
  readonly has_summary: boolean;
  /** The newest closed turns, as many as a compaction keeps. */
  readonly closed: readonly ViewPart[];
  /** Since the last turn_end. */
  readonly open: ViewPart;
  /** Compactions that changed the view, and model steps that were asked for one. */
  readonly passes: number;
  readonly steps: number;
  /** After a compaction that was not enough the next one waits until the prompt has grown to this. */
  readonly next_pass_at: number;
  /** The last compaction's effect is an estimate still: the next report says what it was. */
  readonly settling: boolean;
  /** The smallest estimate of a prompt that the provider has refused as too long; 0: none. */
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

/** The members of the context that belong to what models are shown. */
export interface CompactionState {
  /** What models are shown, in figures. */
  readonly view: ViewAccount;
  /** The compaction of the open turn, from the seam before it to the seam after it. */
  readonly pass: Pass | null;
  /** How often the provider has refused the open turn's prompt as too long. */
  readonly overflows: number;
  /** The model step of the compaction that is under way. */
  readonly compacting: (OpenEffect & { readonly restarts: number }) | null;
}

/** An empty view. */
export const EMPTY_COMPACTION: CompactionState = { view: EMPTY_VIEW, pass: null, overflows: 0, compacting: null };

/** Each turn considers a compaction anew. */
export const COMPACTION_AT_TURN_START: Pick<CompactionState, 'pass' | 'overflows'> = { overflows: 0, pass: null };

/** The end of a run leaves no model step open. */
export const COMPACTION_AT_RUN_END: Pick<CompactionState, 'compacting'> = { compacting: null };
