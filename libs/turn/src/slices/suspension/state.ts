/** Requested and current suspensions, stored signals, and the messages to the model after a wait: a suspension or idling. */
import type { Actor, Json, OnTimeout, ReminderMessage, UserMessage } from '@coxswain/protocol';
import type { OpenEffect } from '../../core/journal-place.ts';

/** A requested suspension. It starts after the open turn; in an idle daemon, at once. */
export interface RequestedSuspension {
  /** The command that requested it, or the call of the tool `park`. */
  readonly command_id?: string | undefined;
  readonly call_id?: string | undefined;
  readonly actor?: Actor | undefined;
  readonly reason?: string | undefined;
  readonly until_ms?: number | undefined;
  readonly for_ms?: number | undefined;
  readonly signal?: string | undefined;
  readonly on_timeout?: OnTimeout | undefined;
  readonly input?: string | undefined;
  /** An interrupt that arrived after the request and was delivered: the session resumes as soon as it is suspended. */
  readonly interrupted_by?: string | undefined;
  /** The name of the failed step that requested it, or that replaced an earlier request. It waits for a person. */
  readonly step?: string | undefined;
}

/** A current suspension: its start, and what ends it. */
export interface Suspension extends Omit<RequestedSuspension, 'for_ms'> {
  readonly since_ms: number;
  readonly timer?: OpenEffect | undefined;
  /** The command that ended it. */
  readonly resumed_by?: string | undefined;
  /** Its time limit was reached. */
  readonly expired?: true | undefined;
}

/** A received signal that has not ended a suspension. */
export interface StoredSignal {
  readonly command_id: string;
  readonly name: string;
  readonly data?: Json | undefined;
}

/** The messages to the model after a suspension, or after the wake interval of a daemon. */
export interface Waking {
  /** The command or call that requested the suspension, empty if a step did; or the timer of the interval. */
  readonly id: string;
  readonly seam: 'post_resume' | 'daemon_idle_post';
  readonly messages: readonly (UserMessage | ReminderMessage)[];
  /** Whether the messages continue the run by themselves. Otherwise they accompany other work. */
  readonly takes_turn: boolean;
}

/** The members of the context for waits of the session. */
export interface SuspensionState {
  /** The requested suspension, until it starts or is dropped. */
  readonly suspend: RequestedSuspension | null;
  /** The current suspension. */
  readonly suspension: Suspension | null;
  /** Stored signals, oldest first. */
  readonly signals: readonly StoredSignal[];
  /** The timer that wakes an idle daemon. */
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

/** A turn starts after the messages of a wait are delivered. */
export const SUSPENSION_AT_TURN_START: Pick<SuspensionState, 'waking'> = { waking: null };
