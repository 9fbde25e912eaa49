/** How a run goes from persona to persona. */

/** How a run goes from persona to persona. */
export interface Relay {
  /** Hand-offs since the last new message. */
  readonly count: number;
  /** The persona whose turn is open, where it has handed the session over in it. */
  readonly from: string | null;
  /** The call whose brief the next persona is still to be told. */
  readonly owes: string | null;
  /** What the run had used when its persona took over; null where it began with it. */
  readonly since: {
    readonly turns: number;
    readonly tokens: number;
    readonly nano_usd: number;
    readonly ms: number;
  } | null;
}

/** There was no hand-off. */
export const NO_RELAY: Relay = { count: 0, from: null, owes: null, since: null };

/** The members of the context that belong to hand-offs. */
export interface HandoffState {
  /** How the run goes from persona to persona. */
  readonly relay: Relay;
}

/** No hand-off. */
export const EMPTY_HANDOFF: HandoffState = { relay: NO_RELAY };

/** A run begins with the persona that its start names. */
export const HANDOFF_AT_RUN_START: HandoffState = EMPTY_HANDOFF;
