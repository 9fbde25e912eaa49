/** Ports of hooks, and of stop conditions in code. */
import type { HookQuestion, HookReply, HookTable, Message, SessionRef, TenantId } from '@coxswain/protocol';

export type { HookQuestion, HookReply };

/** One request of a host to one registration. */
export interface HookRequest extends Omit<HookQuestion, 'transcript' | 'messages'> {
  /** Builds the messages that models see now. It may be long, so it is built only on demand. */
  readonly transcript: () => readonly Message[];
  /** At `transform_context`: the messages of the request, as the previous handlers changed them. */
  readonly messages?: readonly Message[];
  /** Trace context for the handler; undefined without tracing. */
  readonly traceparent?: string | undefined;
}

/** Consults hooks. */
export interface Hooks {
  /**
   * The registrations that apply to sessions now, in registration order. Contract: the table is complete before a host
   * starts. A hook without a live service stays in the table, marked `unavailable`, until its registration is removed.
   * @param tenant the tenant of the sessions. Hooks on a bus apply only to sessions of their own tenant.
   */
  table(tenant: TenantId): HookTable;
  /**
   * Calls back after changes of the table, with the tenant of the table; undefined: of every tenant.
   * @returns a function that removes the listener.
   */
  onChange?(changed: (tenant?: TenantId) => void): () => void;
  /** Consults one registration. Contract: never rejects. The caller bounds the time. */
  ask(request: HookRequest, signal: AbortSignal): Promise<HookReply>;
}

/** Handlers that a process can serve to hosts elsewhere. */
export interface HookHandlers {
  /** The registrations, in registration order. */
  table(): HookTable;
  /** Runs the handler of one registration. Contract: never rejects. It takes ownership of the question's payload. */
  answer(question: HookQuestion, signal: AbortSignal): Promise<HookReply>;
}

/** The input of a stop predicate: a turn that has ended. */
export interface StopQuestion {
  readonly ref: SessionRef;
  readonly turn: number;
  /** The transcript so far, oldest first, including the last answer and its results. */
  readonly messages: readonly Message[];
}

/** A stop condition in code. It may be evaluated again after a crash. */
export type StopPredicate = (question: StopQuestion, signal: AbortSignal) => boolean | Promise<boolean>;

/** The predicates that personas can refer to, by name. */
export type StopPredicates = Readonly<Record<string, StopPredicate>>;
