/** What is said to and by those who run tools: read strictly, and put into outcomes. */
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

/** What names a call for whoever runs it. */
export type CallName = Pick<ToolCall, 'idempotencyKey' | 'ref' | 'tool' | 'epoch'>;

/** One answer of an instance, with what every answer says. */
const SAID_MAX_BYTES = TOOL_SERVICE_BOUNDS.answerMaxBytes + 4_096;

/** What every order about a call says. */
export function named({ idempotencyKey, ref, epoch }: CallName): Pick<ToolOrder, 'v' | 'key' | 'session_id' | 'epoch'> {
  return { v: 1, key: idempotencyKey, session_id: ref.sessionId, epoch };
}

/** What a message says about a call; null where it is no answer about it (C3). */
export function saidIn(message: Msg, key: string): ToolSaid | null {
  if (message.data.length > SAID_MAX_BYTES) return null;
  try {
    const parsed = ToolSaid.safeParse(message.json());
    return parsed.success && parsed.data.key === key ? parsed.data : null;
  } catch {
    // No JSON.
    return null;
  }
}

/** How a call has ended, by whoever ran it. */
export function outcomeOf({ status, result, edited }: ToolEnded): ToolOutcome {
  return { status, result, ...(edited ? { edited } : {}) };
}

/** Why a call shall stop, in words that fit. */
export function reasonOf(reason: unknown): string {
  return cutText(typeof reason === 'string' ? reason : 'cancelled', 2_048);
}

/** The outcome of a call with which nothing was done. */
export function unavailable(message: string, code: ErrorCode = 'tool_unavailable'): ToolOutcome {
  return { status: 'unavailable', result: textOf(message, true, code) };
}

/** Why the outcome of a call is unknown, as the end of a sentence that says so. */
export const LOST = {
  gone: 'the process that ran this call ended',
  silent: `the process that runs this call did not answer for ${TOOL_LIVENESS.silentMaxMs / 1_000} seconds`,
  left: 'this host has left the session',
} as const;

/** The outcome of a call of which nothing more can be learned. @param why one of {@link LOST}, or words of the instance. */
export function lost(why: string = LOST.gone): ToolOutcome {
  return { status: 'lost', result: textOf(why, true, 'tool_interrupted') };
}

/** A result of one text. */
export function textOf(text: string, is_error: boolean, code?: ErrorCode): ToolOutcome['result'] {
  return { content: [{ type: 'text', text }], is_error, ...(code === undefined ? {} : { detail: { code } }) };
}
