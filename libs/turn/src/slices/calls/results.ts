/**
 * Results that the runtime writes, and results after PostToolUse hooks rewrote them. The host has cut the result of a tool to
 * its bound before: `boundResult` (bound-result.ts in libs/session).
 */

import {
  cutText,
  type Denial,
  type EventOf,
  type Json,
  type JsonObject,
  redactArgs,
  type SessionEvent,
  type ToolResult,
  type Verdict,
} from '@coxswain/protocol';
import type { CallAt, CallRow } from './state.ts';

/** The end of a call with a result of the runtime. */
export function buildCallEnded(
  row: Pick<CallRow, 'call_id' | 'tool'>,
  status: Extract<SessionEvent, { type: 'call_ended' }>['status'],
  text: string,
  extra: { readonly detail?: JsonObject; readonly denial?: Denial } = {},
): SessionEvent {
  const result: ToolResult = {
    content: [{ type: 'text', text }],
    is_error: true,
    ...(extra.detail ? { detail: extra.detail } : {}),
  };
  return {
    type: 'call_ended',
    call_id: row.call_id,
    tool: row.tool,
    status,
    result,
    is_error: true,
    duration_ms: 0,
    ...(extra.denial ? { denial: extra.denial } : {}),
  };
}

/**
 * The end of a denied call. The detail of the result and the event name the reason. The callers compose the text: `refuse`
 * (run.ts) for a rule or a person, hooked.ts for hooks before the call and gates, and `buildDenialByHookOrExpiry`
 * (approvals.ts) for a notified hook or an expiry.
 */
export function buildCallDenied(
  row: Pick<CallRow, 'call_id' | 'tool' | 'args'>,
  denial: Denial,
  text: string,
): SessionEvent {
  const whole: Denial = { ...denial, args: redactArgs(row.args) };
  return buildCallEnded(row, 'denied', text, { denial: whole, detail: { denied: whole as unknown as Json } });
}

/**
 * The end of a call with an unknown outcome that is not re-run.
 * @param why a sentence that says why there is no re-run, such as a denial by a person.
 */
export function endedUnknown({ call_id, tool }: CallRow, why: string): SessionEvent {
  const text = `The outcome of this tool call is unknown: the host or process that ran it stopped responding. It was not re-run. ${why}`;
  const result: ToolResult = {
    content: [{ type: 'text', text }],
    is_error: true,
    detail: { code: 'tool_interrupted' },
  };
  return { type: 'call_ended', call_id, tool, status: 'interrupted', result, is_error: true, duration_ms: 0 };
}

type Rewrite = Omit<Extract<Verdict, { kind: 'rewrite_result' }>, 'kind'>;

/** Applies a hook's rewrite to a result. */
export function rewriteResult(result: ToolResult, { result: text, is_error, max_output }: Rewrite): ToolResult {
  const flagged = { ...result, is_error: is_error ?? result.is_error };
  const told: ToolResult =
    text === undefined ? flagged : withoutWhole({ ...flagged, content: [{ type: 'text', text }] });
  return max_output === undefined ? told : cut(told, max_output);
}

/**
 * The end of a returned call. The error flag is derived from the last rewrite: a hook may turn an error into an answer,
 * or the other way round.
 */
export function returnedEnd(row: CallAt<'returned'>, result: ToolResult): EventOf<'call_ended'> {
  const { status, duration_ms } = row.returned;
  const settled = status === 'ok' || status === 'error' ? (result.is_error ? 'error' : 'ok') : status;
  const { call_id, tool } = row;
  return { type: 'call_ended', call_id, tool, status: settled, result, is_error: settled !== 'ok', duration_ms };
}

/** The length of a result's text in characters. */
export function textLength({ content }: Pick<ToolResult, 'content'>): number {
  return content.reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : 0), 0);
}

// Text that a hook removed must not be readable with `read_result`.
function withoutWhole({ detail, ...result }: ToolResult): ToolResult {
  const { whole: _, ...rest } = detail ?? {};
  return Object.keys(rest).length > 0 ? { ...result, detail: rest } : result;
}

/** Keeps the files, and at most this number of characters of the text, with a note about the cut if it has room. */
function cut(result: ToolResult, most: number): ToolResult {
  const total = textLength(result);
  if (total <= most) return result;
  const note = `\n[cut by a hook: ${total} characters]`;
  let left = most > 2 * note.length ? most - note.length : most;
  const ends = left < most ? note : '';
  const content: ToolResult['content'] = [];
  for (const part of result.content) {
    if (part.type !== 'text') content.push(part);
    else if (left > 0) {
      const kept = cutText(part.text, left);
      left -= part.text.length;
      content.push(left > 0 ? part : { ...part, text: kept + ends });
    }
  }
  return withoutWhole({ ...result, content });
}
