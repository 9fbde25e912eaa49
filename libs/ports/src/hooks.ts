/** The hook port. */
import type { HookRegistration, HookTable, JsonObject, Message, SessionRef, TenantId } from '@coxswain/protocol';

/** One question to one registration. */
export interface HookRequest {
  readonly ref: SessionRef;
  /** The consult that it is a part of: unique in the session, and the same when it is asked again after a crash. */
  readonly effectId: string;
  readonly registration: HookRegistration;
  readonly payload: JsonObject;
  /** What models are shown now. Made when it is called: it may be long. */
  readonly transcript: () => readonly Message[];
  /** At `transform_context`: what the request would show, as the handlers before this one have left it. */
  readonly messages?: readonly Message[];
  /** Inbox feedback for the model, durable. At most 2 KiB; the rest is cut. */
  readonly onFeedback: (text: string) => void;
}

/** What came back: the handler's return as it is, or why there is none. */
export type HookReply =
  | { readonly status: 'returned'; readonly raw: unknown }
  | {
      readonly status: 'failed';
      readonly code: 'hook_threw' | 'hook_unavailable' | 'return_unreadable';
      readonly message: string;
    };

/** Where hooks are asked. */
export interface Hooks {
  /**
   * The registrations that sessions see now, in the order in which they were made. Contract: complete before a host
   * starts, and what has ceased to be served stays in it, marked `unavailable`, until it is taken back.
   * @param tenant whose sessions; without one, only what holds for the sessions of every tenant.
   */
  table(tenant?: TenantId): HookTable;
  /** Calls back whenever the table has become another one. @returns ends that. */
  onChange?(changed: () => void): () => void;
  /** Asks one registration. Contract: never rejects. The caller bounds the time. */
  ask(request: HookRequest, signal: AbortSignal): Promise<HookReply>;
}

/** One question as a service is asked it: what may be long is fetched when it is looked at. */
export interface HookQuestion extends Omit<HookRequest, 'transcript' | 'messages'> {
  readonly transcript: () => Promise<readonly Message[]>;
  /** At `transform_context` only. */
  readonly messages?: () => Promise<readonly Message[]>;
}

/** Handlers that can be served to hosts elsewhere. */
export interface HookHandlers {
  /** What is registered, in the order in which it was. */
  table(tenant?: TenantId): HookTable;
  /** Runs the handler of one registration. Contract: never rejects, and takes the question's payload for its own. */
  answer(question: HookQuestion, signal: AbortSignal): Promise<HookReply>;
}
