/**
 * Results that the runtime writes, and results that PostToolUse hooks have rewritten. The host cuts the result of a tool to
 * its bound before these hooks: `boundResult` (bound-result.ts in libs/session).
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

/** The end of a call with an error result of the runtime, and a duration of 0. */
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
 * The end of a denied call, with the denial in the event and in the detail of the result. The callers compose the text:
 * `refuse` (batch.ts) for a rule or a person, hooked.ts for hooks before the call, and `buildDenialByHookOrExpiry`
 * (approvals/approvals.ts) for an OnApprovalRequested hook or an expiry.
 */
export function buildCallDenied(
  row: Pick<CallRow, 'call_id' | 'tool' | 'args'>,
  denial: Denial,
  text: string,
): SessionEvent {
  const whole: Denial = { ...denial, args: redactArgs(row.args) };
  return buildCallEnded(row, 'denied', text, { denial: whole, detail: { denied: whole as unknown as Json } });
}

/** The end of a call that a permission rule denies. */
export function buildCallDeniedByRule(row: Pick<CallRow, 'call_id' | 'tool' | 'args'>, rule: string): SessionEvent {
  return buildCallDenied(row, { by: 'rule', rule }, deniedByRule(rule));
}

/** The sentence about a denial by a permission rule. */
export function deniedByRule(rule: string): string {
  return `Denied by permission rule ${rule}.`;
}

/**
 * The end of a call in doubt (`in_doubt`) that is not re-run. Other unknown outcomes: `unknownOutcome` (run-tool-call.ts in
 * libs/session), and cancel.ts.
 * @param why a sentence that says why there is no re-run, such as a denial by a person.
 */
export function buildCallInterrupted({ call_id, tool }: CallRow, why: string): SessionEvent {
  const text = `The outcome of this tool call is unknown: the host or process that ran it stopped responding. It was not re-run. ${why}`;
  const result: ToolResult = {
    content: [{ type: 'text', text }],
    is_error: true,
    detail: { code: 'tool_interrupted' },
  };
  return { type: 'call_ended', call_id, tool, status: 'interrupted', result, is_error: true, duration_ms: 0 };
}

type Rewrite = Omit<Extract<Verdict, { kind: 'rewrite_result' }>, 'kind'>;

/**
 * Applies a hook's rewrite to a result. A new text replaces the whole content, files included. Then the text is cut to
 * `max_output` UTF-16 units.
 */
export function rewriteResult(result: ToolResult, { result: text, is_error, max_output }: Rewrite): ToolResult {
  const flagged = { ...result, is_error: is_error ?? result.is_error };
  const rewritten: ToolResult =
    text === undefined ? flagged : withoutWhole({ ...flagged, content: [{ type: 'text', text }] });
  return max_output === undefined ? rewritten : cut(rewritten, max_output);
}

/**
 * The end of a returned call.
 * @param result the result after the rewrites of hooks. Its error flag decides between the statuses `ok` and `error`;
 * other statuses stay.
 */
export function returnedEnd(row: CallAt<'returned'>, result: ToolResult): EventOf<'call_ended'> {
  const { status, duration_ms } = row.returned;
  const endStatus = status === 'ok' || status === 'error' ? (result.is_error ? 'error' : 'ok') : status;
  const { call_id, tool } = row;
  return { type: 'call_ended', call_id, tool, status: endStatus, result, is_error: endStatus !== 'ok', duration_ms };
}

/** The length of a result's text, in UTF-16 units. */
export function textLength({ content }: Pick<ToolResult, 'content'>): number {
  return content.reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : 0), 0);
}

// Removes the reference to the stored whole text: text that a hook removed must not be readable with `read_result`.
function withoutWhole({ detail, ...result }: ToolResult): ToolResult {
  const { whole: _, ...rest } = detail ?? {};
  return Object.keys(rest).length > 0 ? { ...result, detail: rest } : result;
}

/** Keeps the files, and at most `most` UTF-16 units of the text, with a note about the cut if there is room for it. */
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
