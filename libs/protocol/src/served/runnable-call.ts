/** A call of a tool or a step of a persona in the process that runs it, and its ending. */
import type { ToolResult } from '../journal/inputs.ts';
import type { ToolCallContext } from '../tools/tool-call-context.ts';
import type { LATER } from '../tools/tool-declarations.ts';
import type { JsonObject } from '../wire/json.ts';
import { cutText } from '../wire/unicode-text.ts';
import type { StartedWork } from './observe-work.ts';
import type { WorkEnded } from './work.ts';

/** The ending of a call or a step. */
export type CallEnding = Pick<WorkEnded, 'status' | 'result' | 'edited'>;

/** A call or a step, ready to run. */
export interface RunnableCall extends Pick<StartedWork, 'kind' | 'name'> {
  /** Whether its outcome is sent as the command `call_outcome`, possibly after this process has ended. */
  readonly isLongRunning: boolean;
  /** Runs it. Contract: never rejects. @returns LATER if the outcome is sent later, possibly by another process. */
  run(args: JsonObject, context: Omit<ToolCallContext, 'edited'>): Promise<CallEnding | typeof LATER>;
}

/**
 * The ending of a failed call.
 * @param message shown to the model as its result, cut at 16,384 characters.
 * @param code the `code` in the detail of the result.
 */
export function failedCall(message: string, code = 'tool_failed'): CallEnding {
  return { status: 'error', result: { ...errorText(cutText(message, 16_384)), detail: { code } } };
}

/** The ending of a cancelled call. @param text shown to the model as its result. */
export function cancelledCall(text: string): CallEnding {
  return { status: 'cancelled', result: errorText(text) };
}

function errorText(text: string): ToolResult {
  return { content: [{ type: 'text', text }], is_error: true };
}
