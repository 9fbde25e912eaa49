/** Outcomes of calls that did not come from a server, in the form of the tool port. */
import type { ToolOutcome } from '@coxswain/ports';
import type { ErrorCode } from '@coxswain/protocol';

/** A call that failed, or whose effect is unknown. */
export function failed(code: ErrorCode, message: string): ToolOutcome {
  return ended('error', message, code);
}

/** A call that no server could accept: nothing ran. */
export function unavailable(message: string): ToolOutcome {
  return ended('unavailable', message, 'tool_unavailable');
}

/** A call that was cancelled by its signal. */
export function cancelled(message: string): ToolOutcome {
  return ended('cancelled', message);
}

function ended(status: ToolOutcome['status'], text: string, code?: ErrorCode): ToolOutcome {
  const detail = code === undefined ? {} : { detail: { code } };
  return { status, result: { content: [{ type: 'text', text }], is_error: true, ...detail } };
}
