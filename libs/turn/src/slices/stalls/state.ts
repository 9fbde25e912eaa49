/**
 * The state of stall detection.
 */

/** Fingerprints of a run's calls and results, to detect repetitions. */
export interface StallWatch {
  /** The newest call, and how many times in a row the model has requested it. */
  readonly call: string;
  readonly repeats: number;
  /** The newest distinct results, oldest first, and whether the open turn has a new one. */
  readonly results: readonly string[];
  readonly fresh: boolean;
  /** Turns in a row with calls and without a new result. */
  readonly stale_turns: number;
  /**
   * Sources of the feedback that was queued or dropped: about the current stalls, and about rules that denied
   * calls. Such feedback is not repeated.
   */
  readonly told: readonly string[];
  /** Rules that denied a call of a tool, without feedback about it so far. */
  readonly refusals: readonly { readonly rule: string; readonly tool: string }[];
}

/** No call so far. */
export const NO_STALL: StallWatch = {
  call: '',
  repeats: 0,
  results: [],
  fresh: false,
  stale_turns: 0,
  told: [],
  refusals: [],
};

/** The members of the context for stall detection. */
export interface StallsState {
  readonly stall: StallWatch;
}

/** No call so far. */
export const EMPTY_STALLS: StallsState = { stall: NO_STALL };

/** Stall detection restarts with each run; also after a hand-off (`personaChanged`, runs/provision.ts). */
export const STALLS_AT_RUN_START: StallsState = EMPTY_STALLS;
