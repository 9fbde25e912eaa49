import {
  cutText,
  failedCall,
  type ServedHookAnswer,
  type SessionRef,
  type WorkEnded,
  WorkEndHead,
  type WorkOrder,
  type WorkRequest,
} from '@coxswain/protocol';
import type { Msg } from '@nats-io/nats-core';
import { valueIn } from '../value-in.ts';
import { type ServedAddress, subjectsOf } from './address.ts';
import type { Replies } from './reply-inbox.ts';

/** The identity of a request for the instance that runs it. */
export interface AskName {
  /** The idempotency key. */
  readonly key: string;
  readonly ref: SessionRef;
  /** The epoch of the session; undefined for a question. */
  readonly epoch?: number | undefined;
  readonly to: ServedAddress;
}

/** How a request may be repeated, and how long it waits. Times in milliseconds. */
export interface AskTraits {
  /**
   * It may run more than once: it moves when its instance dies, falls silent or gives it up. Other work does not move
   * after its start.
   */
  readonly isRepeatable: boolean;
  /**
   * The instance starts it only at the host's order. So work that no instance has accepted has certainly not run. Work
   * that is not repeatable must be held.
   */
  readonly isHeld: boolean;
  /** How often repeatable work may move after its start. Work that crashes its process must not crash all instances. */
  readonly movesMax: number;
  /** How long it is sent again while no instance accepts it. Infinity: until the caller aborts it. */
  readonly unacceptedMaxMs: number;
  /** "No responders" for the first message ends it at once. */
  readonly endsUnserved?: boolean;
  /** Silence after which the instance that runs repeatable work is declared dead. */
  readonly silentAfterMs: number;
  /** Once an instance has it, only the reports of that one count: pieces of two answers must not mix. */
  readonly isStreamed?: boolean;
  /** After an abort, it ends without waiting for the instance. */
  readonly endsAtAbort?: boolean;
}

/** A request of a host to a service. */
export interface Ask extends AskName {
  readonly traits: AskTraits;
  /** The members of the request that its kind needs. */
  readonly request: Pick<WorkRequest, 'args' | 'call_id' | 'tool' | 'hook' | 'approval'>;
  readonly traceparent?: string | undefined;
  onProgress(text: string): void;
  onFeedback(text: string): void;
  /** Called when an instance has started it. */
  onStarted?: ((instance: string) => void) | undefined;
}

/**
 * The end of a request.
 * - `unaccepted`: no instance accepted it.
 * - `lost`: its outcome is unknown. `moves`: how often it moved.
 * - `cancelled`: it ended because the signal aborted.
 */
export type AskEnd =
  | WorkEnded
  | { readonly type: 'answered'; readonly answer: ServedHookAnswer }
  | { readonly type: 'accepted'; readonly epoch?: number | undefined }
  | {
      readonly type: 'unaccepted';
      readonly message: string;
      readonly code?: 'stale_epoch' | 'tool_unavailable' | undefined;
    }
  | { readonly type: 'lost'; readonly message: string; readonly moves: number }
  | { readonly type: 'cancelled'; readonly message: string };

/** The state of an open request. Times are on the monotonic clock, in milliseconds. */
export interface OpenAsk {
  readonly ask: Ask;
  readonly replies: Replies;
  /** The instance that holds or runs it; null while no instance has it. */
  instance: string | null;
  /** Whether the instance may have started it. */
  hasStarted: boolean;
  /** Number of start orders to the instance. */
  startOrders: number;
  /** Number of moves away from an instance that has run it or may have run it. */
  moves: number;
  /** Instances that it was sent to, and those that refused it. Cleared when no other one is left. */
  readonly tried: Set<string>;
  sendings: number;
  /** Number of refusals, at most one for each sending. */
  refusals: number;
  resendAtMs: number;
  /** Number of delayed resends (after refusals or "no responders") since the first message or the last move. */
  delays: number;
  /** Connected time during which no instance has accepted it. */
  unacceptedMs: number;
  /** Why the last instance refused it. */
  refusal: string | null;
  /** Time of the last report of the instance that it holds or runs it. */
  reportedMs: number;
  /** Time of the last message about it. */
  askedMs: number;
  aborted: { readonly atMs: number; readonly reason: string } | null;
  /** Whether an invalid report about it has arrived. */
  hasInvalidReport: boolean;
  settle(end: AskEnd): void;
}

/** Receives problems that an operator may want to know. */
export type NoteProblem = (about: Readonly<Record<string, unknown>>, message: string) => void;

/** Reasons why the outcome of a request is unknown, as the end of a sentence. */
export const LOST = {
  gone: 'the process that ran this call ended',
  left: 'this host has left the session',
  silent: (ms: number) => `the process that runs this call did not answer for ${ms / 1_000} seconds`,
} as const;

/** Ends a request whose outcome is unknown. */
export const lose = (one: OpenAsk, message: string) => one.settle({ type: 'lost', message, moves: one.moves });

/** Ends an aborted request. A call that has moved may have run on the instance before, so that its outcome is unknown. */
export function endAborted(one: OpenAsk, end: AskEnd): void {
  if (one.ask.traits.isHeld && one.moves > 0) lose(one, LOST.gone);
  else one.settle(end);
}

/** The end of a request whose signal was aborted. */
export const cancelled = (message: string): AskEnd => ({ type: 'cancelled', message });

/** The end of a request that no instance has accepted. */
export const unaccepted = (message: string): AskEnd => ({ type: 'unaccepted', message });

/** Why no instance has accepted a request. @param isDeserted whether no instance is known. */
export function unacceptedText({ to: { name }, traits }: Ask, isDeserted: boolean): string {
  if (isDeserted) return `no process serves ${name} at the moment`;
  return `no process that serves ${name} has accepted the call within ${traits.unacceptedMaxMs / 1_000} seconds`;
}

/** The end of a request whose outcome or answer is invalid. @returns null if the report is about something else. */
export function invalidEnd(message: Msg, key: string): WorkEnded | null {
  const end = valueIn(message.data, WorkEndHead);
  if (end?.key !== key) return null;
  const ending = failedCall('the process that ran this call sent an invalid outcome');
  return { v: 1, key, instance: end.instance, type: 'ended', ...ending };
}

/** The common members of every message about a request. */
export function named({ key, ref, epoch }: AskName): Pick<WorkOrder, 'v' | 'key' | 'session_id' | 'epoch'> {
  return { v: 1, key, session_id: ref.sessionId, ...(epoch === undefined ? {} : { epoch }) };
}

/** The subject of an order: of its instance, or of all instances. */
export function orderSubject({ instance, ask }: OpenAsk, mayBeElsewhere: boolean): string {
  const at = subjectsOf(ask.to);
  return instance === null || mayBeElsewhere ? at.orders : at.orderTo(instance);
}

/** The reason to stop a request as text, cut to the allowed length. */
export function reasonOf(reason: unknown): string {
  return cutText(typeof reason === 'string' ? reason : 'cancelled', 2_048);
}

/** The state of a request that was not sent yet. @param instance the instance that runs it, as a probe has found. */
export function newAsk(
  ask: Ask,
  replies: Replies,
  instance: string | undefined,
  nowMs: number,
  settle: OpenAsk['settle'],
): OpenAsk {
  return {
    ask,
    replies,
    instance: instance ?? null,
    hasStarted: instance !== undefined,
    startOrders: 0,
    moves: 0,
    tried: new Set(),
    sendings: 0,
    refusals: 0,
    resendAtMs: Number.POSITIVE_INFINITY,
    delays: 0,
    unacceptedMs: 0,
    refusal: null,
    reportedMs: instance === undefined ? Number.NEGATIVE_INFINITY : nowMs,
    askedMs: nowMs,
    aborted: null,
    hasInvalidReport: false,
    settle,
  };
}
