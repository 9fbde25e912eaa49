/** The ports of hooks and of stop conditions in code. */
import type { HookQuestion, HookReply, HookTable, Message, SessionRef, TenantId } from '@coxswain/protocol';

export type { HookQuestion, HookReply };

/** One question to one registration, as a host asks it. */
export interface HookRequest extends Omit<HookQuestion, 'transcript' | 'messages'> {
  /** What models are shown now. Made when it is called: it may be long. */
  readonly transcript: () => readonly Message[];
  /** At `transform_context`: what the request would show, as the handlers before this one have left it. */
  readonly messages?: readonly Message[];
  /** Trace context for the handler; undefined without tracing. */
  readonly traceparent?: string | undefined;
}

/** Where hooks are asked. */
export interface Hooks {
  /**
   * The registrations that sessions see now, in the order in which they were made. Contract: complete before a host
   * starts, and what has ceased to be served stays in it, marked `unavailable`, until it is taken back.
   * @param tenant whose sessions: what is served on a bus holds for those of its own tenant only.
   */
  table(tenant: TenantId): HookTable;
  /** Calls back whenever the table has become another one. @returns ends that. */
  onChange?(changed: () => void): () => void;
  /** Asks one registration. Contract: never rejects. The caller bounds the time. */
  ask(request: HookRequest, signal: AbortSignal): Promise<HookReply>;
}

/** Handlers that can be served to hosts elsewhere. */
export interface HookHandlers {
  /** What is registered, in the order in which it was. */
  table(): HookTable;
  /** Runs the handler of one registration. Contract: never rejects, and takes the question's payload for its own. */
  answer(question: HookQuestion, signal: AbortSignal): Promise<HookReply>;
}

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
