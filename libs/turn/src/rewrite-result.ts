/** What PostToolUse hooks make of a call's result: another text, another flag, or less of it. Pure. */
import { cutText, type EventOf, type ToolResult, type Verdict } from '@coxswain/protocol';
import type { CallRow } from './context.ts';

type Rewrite = Omit<Extract<Verdict, { kind: 'rewrite_result' }>, 'kind'>;

/** The result as a hook has rewritten it. */
export function rewriteResult(result: ToolResult, { result: text, is_error, max_output }: Rewrite): ToolResult {
  const flagged = { ...result, is_error: is_error ?? result.is_error };
  const told: ToolResult =
    text === undefined ? flagged : withoutWhole({ ...flagged, content: [{ type: 'text', text }] });
  return max_output === undefined ? told : cut(told, max_output);
}

/**
 * The end of a call that has returned. The flag is derived from what stands after the last rewrite: a hook may turn an
 * error into an answer, or the other way round.
 */
export function returnedEnd(row: CallRow, result: ToolResult): EventOf<'call_ended'> {
  const { status = 'ok', duration_ms = 0 } = row.returned ?? {};
  const settled = status === 'ok' || status === 'error' ? (result.is_error ? 'error' : 'ok') : status;
  const { call_id, tool } = row;
  return { type: 'call_ended', call_id, tool, status: settled, result, is_error: settled !== 'ok', duration_ms };
}

/** Characters of a result's text. */
export function textLength({ content }: Pick<ToolResult, 'content'>): number {
  return content.reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : 0), 0);
}

// What a hook has taken out must not be there to be read on.
function withoutWhole({ detail, ...result }: ToolResult): ToolResult {
  const { whole: _, ...rest } = detail ?? {};
  return Object.keys(rest).length > 0 ? { ...result, detail: rest } : result;
}

/** Files stay; of the text the first `most` characters do, the note that says so included. */
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
