/** The outcomes of calls that did not come from a server, as the tool port wants them. */
import type { ToolOutcome } from '@coxswain/ports';
import type { ErrorCode } from '@coxswain/protocol';

/** A call that failed, or of which it is not known whether it took effect. */
export function failed(code: ErrorCode, message: string): ToolOutcome {
  return ended('error', message, code);
}

/** A call that nobody could be asked to run: nothing ran. */
export function unavailable(message: string): ToolOutcome {
  return ended('unavailable', message, 'tool_unavailable');
}

/** A call that was given up because of its signal. */
export function cancelled(message: string): ToolOutcome {
  return ended('cancelled', message);
}

function ended(status: ToolOutcome['status'], text: string, code?: ErrorCode): ToolOutcome {
  const detail = code === undefined ? {} : { detail: { code } };
  return { status, result: { content: [{ type: 'text', text }], is_error: true, ...detail } };
}
