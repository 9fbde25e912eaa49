/** Creates outcomes of calls in the form of the tool port. */

import type { ToolOutcome } from '@coxswain/ports';
import type { ErrorCode, JsonObject, ToolResult } from '@coxswain/protocol';

/**
 * A successful call. `notes` are remarks of the tool about the text, in separate parts, so that the text stays exact.
 */
export function succeeded(text: string, notes: readonly string[] = [], detail?: JsonObject): ToolOutcome {
  return { status: 'ok', result: textResult(false, [text, ...notes], detail) };
}

/** A failed call. `detail.code` has the code. */
export function failed(code: ErrorCode, message: string, detail: JsonObject = {}): ToolOutcome {
  return { status: 'error', result: textResult(true, [message], { code, ...detail }) };
}

/** A call that could not be run: nothing ran. */
export function unavailable(message: string): ToolOutcome {
  return { status: 'unavailable', result: textResult(true, [message], { code: 'tool_unavailable' }) };
}

/** A call whose outcome is unknown: the process that ran it died, stopped or fell silent. */
export function lost(message: string): ToolOutcome {
  return { status: 'lost', result: textResult(true, [message], { code: 'tool_interrupted' }) };
}

/** A call that its signal stopped. */
export function cancelled(message: string, detail?: JsonObject): ToolOutcome {
  return { status: 'cancelled', result: textResult(true, [message], detail) };
}

/** A result of texts. Empty texts are left out, as long as one text remains. */
export function textResult(isError: boolean, texts: readonly string[], detail?: JsonObject): ToolResult {
  const spoken = texts.filter((text) => text !== '');
  const content = (spoken.length > 0 ? spoken : ['']).map((text) => ({ type: 'text' as const, text }));
  return { content, is_error: isError, ...(detail === undefined ? {} : { detail }) };
}
