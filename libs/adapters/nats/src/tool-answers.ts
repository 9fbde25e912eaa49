/** Messages between hosts and tool workers: validates answers strictly and converts them to outcomes. */
import type { ToolCall, ToolOutcome } from '@coxswain/ports';
import {
  cutText,
  type ErrorCode,
  TOOL_LIVENESS,
  TOOL_SERVICE_BOUNDS,
  type ToolEnded,
  type ToolOrder,
  ToolSaid,
} from '@coxswain/protocol';
import type { Msg } from '@nats-io/nats-core';

/** The identity of a call for the instance that runs it. */
export type CallName = Pick<ToolCall, 'idempotencyKey' | 'ref' | 'tool' | 'epoch'>;

/** Maximum bytes of one answer of an instance, including its common members. */
const SAID_MAX_BYTES = TOOL_SERVICE_BOUNDS.answerMaxBytes + 4_096;

/** The common members of every order about a call. */
export function named({ idempotencyKey, ref, epoch }: CallName): Pick<ToolOrder, 'v' | 'key' | 'session_id' | 'epoch'> {
  return { v: 1, key: idempotencyKey, session_id: ref.sessionId, epoch };
}

/** Parses an answer about a call. @returns null if it is too large, invalid, or about another call (C3). */
export function saidIn(message: Msg, key: string): ToolSaid | null {
  if (message.data.length > SAID_MAX_BYTES) return null;
  try {
    const parsed = ToolSaid.safeParse(message.json());
    return parsed.success && parsed.data.key === key ? parsed.data : null;
  } catch {
    // Not JSON.
    return null;
  }
}

/** Converts the final answer of an instance to an outcome. */
export function outcomeOf({ status, result, edited }: ToolEnded): ToolOutcome {
  return { status, result, ...(edited ? { edited } : {}) };
}

/** The reason to stop a call as text, cut to the allowed length. */
export function reasonOf(reason: unknown): string {
  return cutText(typeof reason === 'string' ? reason : 'cancelled', 2_048);
}

/** The outcome of a call that did not run. If it may have taken effect, the message says so. */
export function unavailable(message: string, code: ErrorCode = 'tool_unavailable'): ToolOutcome {
  return { status: 'unavailable', result: textOf(message, true, code) };
}

/** Reasons why the outcome of a call is unknown, as the end of a sentence. */
export const LOST = {
  gone: 'the process that ran this call ended',
  silent: `the process that runs this call did not answer for ${TOOL_LIVENESS.silentMaxMs / 1_000} seconds`,
  left: 'this host has left the session',
} as const;

/** The outcome of a call whose result is unknown. @param why one of {@link LOST}, or a message of the instance. */
export function lost(why: string = LOST.gone): ToolOutcome {
  return { status: 'lost', result: textOf(why, true, 'tool_interrupted') };
}

/** A result with one text. */
export function textOf(text: string, is_error: boolean, code?: ErrorCode): ToolOutcome['result'] {
  return { content: [{ type: 'text', text }], is_error, ...(code === undefined ? {} : { detail: { code } }) };
}
