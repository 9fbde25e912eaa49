/** Fingerprints by which a stalled model is noticed. */

/** What is remembered of a run's calls and results, to tell its model when it goes in circles. Fingerprints only. */
export interface StallWatch {
  /** The newest call, and how often it was asked for in a row. */
  readonly call: string;
  readonly repeats: number;
  /** The newest different results, oldest first, and whether the open turn has brought one that was not among them. */
  readonly results: readonly string[];
  readonly fresh: boolean;
  /** Turns in a row that asked for calls and brought no new result. */
  readonly stale_turns: number;
  /** Sources of what has been told of the stall that is on, and of rules that have refused. */
  readonly told: readonly string[];
  /** Rules that have refused a call and of which nothing has been told yet. */
  readonly refusals: readonly { readonly rule: string; readonly tool: string }[];
}

/** Nothing has been called yet. */
export const NO_STALL: StallWatch = {
  call: '',
  repeats: 0,
  results: [],
  fresh: false,
  stale_turns: 0,
  told: [],
  refusals: [],
};

/** The members of the context that belong to the stall watch. */
export interface StallsState {
  readonly stall: StallWatch;
}

/** Nothing has been called yet. */
export const EMPTY_STALLS: StallsState = { stall: NO_STALL };

/** Each run is watched anew. */
export const STALLS_AT_RUN_START: StallsState = EMPTY_STALLS;
