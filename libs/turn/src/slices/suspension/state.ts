/** Requested and current suspensions, stored signals, and the message to the model after a wait. */
import type { Actor, Json, OnTimeout, ReminderMessage, UserMessage } from '@coxswain/protocol';
import type { OpenEffect } from '../../core/place.ts';

/** A suspension that is asked for and takes hold at the next turn boundary. */
export interface AskedSuspension {
  /** The command that asked, or the call by which the session parks itself. */
  readonly command_id?: string | undefined;
  readonly call_id?: string | undefined;
  readonly actor?: Actor | undefined;
  readonly reason?: string | undefined;
  readonly until_ms?: number | undefined;
  readonly for_ms?: number | undefined;
  readonly signal?: string | undefined;
  readonly on_timeout?: OnTimeout | undefined;
  readonly input?: string | undefined;
  /** An interrupt that came after it was asked for, and was delivered: the session wakes as soon as it is parked. */
  readonly interrupted_by?: string | undefined;
  /** The step that has failed, and waits for a person. */
  readonly step?: string | undefined;
}

/** A suspension that has taken hold: since when, and what ends it. */
export interface Suspension extends Omit<AskedSuspension, 'for_ms'> {
  readonly since_ms: number;
  readonly timer?: OpenEffect | undefined;
  /** The command that has ended it. */
  readonly resumed_by?: string | undefined;
  /** Its time has come. */
  readonly expired?: true | undefined;
}

/** A signal that no suspension has waited for yet. */
export interface StoredSignal {
  readonly command_id: string;
  readonly name: string;
  readonly data?: Json | undefined;
}

/** What the model is still to be told of a wait that is over, said before anything else happens. */
export interface Waking {
  /** The source of the messages: the command, call or timer that started the wait. */
  readonly id: string;
  readonly seam: 'post_resume' | 'daemon_idle_post';
  readonly messages: readonly (UserMessage | ReminderMessage)[];
  /** Whether it gives the model something to do, or only goes with what is done in any case. */
  readonly takes_turn: boolean;
}

/** The members of the context that belong to waits of the session. */
export interface SuspensionState {
  readonly suspend: AskedSuspension | null;
  readonly suspension: Suspension | null;
  /** Signals that wait for a suspension that waits for them, oldest first. */
  readonly signals: readonly StoredSignal[];
  /** Wakes an idling daemon. */
  readonly idle_timer: (OpenEffect & { readonly due_at_ms: number }) | null;
  readonly waking: Waking | null;
}

/** The session does not wait, and no suspension was requested. */
export const EMPTY_SUSPENSION: SuspensionState = {
  suspend: null,
  suspension: null,
  signals: [],
  idle_timer: null,
  waking: null,
};

/** Suspensions and signals belong to one run. */
export const SUSPENSION_AT_RUN_START: SuspensionState = EMPTY_SUSPENSION;

/** Suspensions and signals belong to one run. */
export const SUSPENSION_AT_RUN_END: SuspensionState = EMPTY_SUSPENSION;

/** A turn takes up what a wait had left to do. */
export const SUSPENSION_AT_TURN_START: Pick<SuspensionState, 'waking'> = { waking: null };
