/** The port of predicates: stop conditions in code. */
import type { Message, SessionRef } from '@coxswain/protocol';

/** What a predicate is asked about: a turn that is over. */
export interface StopQuestion {
  readonly ref: SessionRef;
  readonly turn: number;
  /** The transcript so far, oldest first; the last answer and its results are in it. */
  readonly messages: readonly Message[];
}

/** A stop condition in code. It may be asked again after a crash. */
export type StopPredicate = (question: StopQuestion, signal: AbortSignal) => boolean | Promise<boolean>;

/** The predicates that personas may name, by name. */
export type StopPredicates = Readonly<Record<string, StopPredicate>>;
