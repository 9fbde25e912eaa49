/** Converts calls of tools to requests of served work, and their ends to outcomes. */
import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { Ask, AskEnd, Asking, AskProbe, ServedAddress } from '@coxswain/bus';
import type { ApprovalQuestion, ToolCall, ToolOutcome, ToolProbe } from '@coxswain/ports';
import { APPROVAL_CHECK_MS, type ErrorCode, SERVED_LIVENESS } from '@coxswain/protocol';
import { questionTraits } from './hook-questions.ts';

/** Default limit of moves: a call that crashes its process must not crash all instances. */
const MOVES_MAX = 3;

/** Converts a call. @param member the name of the tool, if several tools are served under the address. */
export function askOf(call: ToolCall, to: ServedAddress, member?: string): Ask {
  const { idempotencyKey, ref, epoch, callId, args, isIdempotent, movesMax, traceparent } = call;
  return {
    key: idempotencyKey,
    ref,
    epoch,
    to,
    traits: {
      isRepeatable: isIdempotent === true,
      isHeld: true,
      movesMax: movesMax ?? MOVES_MAX,
      unacceptedMaxMs: SERVED_LIVENESS.unacceptedMaxMs,
      silentAfterMs: SERVED_LIVENESS.ttlMs,
    },
    request: { call_id: callId, ...(member === undefined ? {} : { tool: member }), args },
    traceparent,
    onProgress: (text) => call.onProgress(text),
    onFeedback: (text) => call.onFeedback(text),
    onStarted: (instance) => call.onTaken?.(instance),
  };
}

/** The pause before a question without an answer is asked again, milliseconds. */
const ASKED_AGAIN_MS = 1_000;

/**
 * Asks a tool whether a person must approve a call. Contract: never rejects; true if the signal aborts before an answer.
 * @param member the name of the tool, if several tools are served under the address.
 */
export async function askApproval(
  asking: Asking,
  to: ServedAddress,
  { ref, callId, args }: ApprovalQuestion,
  signal: AbortSignal,
  member?: string,
): Promise<boolean> {
  const request = { call_id: callId, approval: true, ...(member === undefined ? {} : { tool: member }), args } as const;
  while (!signal.aborted) {
    const ask: Ask = {
      // The question has no effect; its key only distinguishes it from others.
      key: `${ref.tenant}.${ref.sessionId}.0-0.${randomUUID()}`,
      ref,
      to,
      traits: questionTraits(APPROVAL_CHECK_MS),
      request,
      onProgress: () => undefined,
      onFeedback: () => undefined,
    };
    const end = await asking.ask(ask, signal);
    if (end.type === 'answered') return end.answer.status !== 'returned' || end.answer.raw !== false;
    await setTimeout(ASKED_AGAIN_MS, null, { signal, ref: false }).catch(() => undefined);
  }
  return true;
}

/** Converts the end of a call. */
export function outcomeOf(end: AskEnd): ToolOutcome {
  switch (end.type) {
    case 'ended':
      return { status: end.status, result: end.result, ...(end.edited ? { edited: end.edited } : {}) };
    case 'accepted':
      return { status: 'accepted', result: textOf('', false), epoch: end.epoch };
    case 'unaccepted':
      return unavailable(end.message, end.code);
    case 'lost':
      return { status: 'lost', result: textOf(end.message, true, 'tool_interrupted'), moves: end.moves };
    case 'cancelled':
      return { status: 'cancelled', result: textOf(end.message, true) };
    case 'answered':
      return { status: 'error', result: textOf('a tool answered as a hook', true, 'tool_failed') };
  }
}

/** Converts a probe of a call. @param asCall converts the call that attaches. */
export function probeOf(probe: AskProbe, asCall: (call: ToolCall) => Ask): ToolProbe {
  if (probe.state === 'done') return { state: 'done', outcome: outcomeOf(probe.end) };
  if (probe.state !== 'running') return { state: probe.state };
  const { attach } = probe;
  return { state: 'running', attach: async (call, signal) => outcomeOf(await attach(asCall(call), signal)) };
}

/** The outcome of a call that did not run. If it may have taken effect, the message says so. */
export function unavailable(message: string, code: ErrorCode = 'tool_unavailable'): ToolOutcome {
  return { status: 'unavailable', result: textOf(message, true, code) };
}

function textOf(text: string, is_error: boolean, code?: ErrorCode): ToolOutcome['result'] {
  return { content: [{ type: 'text', text }], is_error, ...(code === undefined ? {} : { detail: { code } }) };
}
