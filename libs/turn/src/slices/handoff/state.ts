/**
 * The hand-offs of a run.
 */

/** The hand-offs of a run so far. */
export interface Relay {
  /** Hand-offs since the last prompt or follow-up, or the last idling of a daemon. */
  readonly count: number;
  /** The persona that started the open turn, if a hand-off has replaced it in this turn. */
  readonly from: string | null;
  /**
   * The call id of the hand-off whose briefing still must be delivered to the next persona (`nextBriefing`), or null.
   */
  readonly owes: string | null;
  /** Usage of the run at the last hand-off, from which the limits of the new persona count; null without one. */
  readonly since: {
    readonly turns: number;
    readonly tokens: number;
    readonly nano_usd: number;
    readonly ms: number;
  } | null;
}

/** No hand-off so far. */
export const NO_RELAY: Relay = { count: 0, from: null, owes: null, since: null };

/** The members of the context for hand-offs. */
export interface HandoffState {
  readonly relay: Relay;
}

/** No hand-off. */
export const EMPTY_HANDOFF: HandoffState = { relay: NO_RELAY };

/** A run starts without hand-offs. */
export const HANDOFF_AT_RUN_START: HandoffState = EMPTY_HANDOFF;
