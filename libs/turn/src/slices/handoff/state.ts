/**
 * The changes of persona in a run.
 */

/** The changes of persona in a run. */
export interface Relay {
  /** Hand-offs since the last new message. */
  readonly count: number;
  /** The persona that started the open turn, if it handed the session over during it. */
  readonly from: string | null;
  /** The call whose briefing the next persona has not received. */
  readonly owes: string | null;
  /** Usage of the run at the last hand-off; null without one. */
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
  /** The changes of persona in the run. */
  readonly relay: Relay;
}

/** No hand-off. */
export const EMPTY_HANDOFF: HandoffState = { relay: NO_RELAY };

/** A run starts with the persona of its start. */
export const HANDOFF_AT_RUN_START: HandoffState = EMPTY_HANDOFF;
