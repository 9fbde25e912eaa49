import {
  BOUNDS,
  cutText,
  EditedPath,
  type JsonObject,
  LATER,
  problemSentences,
  readStrictly,
  SERVED_BOUNDS,
  type ToolApprovalContext,
  type ToolCallContext,
  ToolResult,
} from '@coxswain/protocol';
import type { CallEnding } from './ledger.ts';

/** A tool or a model step, ready to run. */
export interface RunnableTool {
  readonly announced: { readonly name: string; readonly traits: { readonly long_running: boolean } };
  /** Validates arguments from the bus. @returns the input for `run`, or a description of the problem. */
  check(args: JsonObject): Promise<{ readonly args: unknown } | { readonly problem: string }>;
  /** Whether a person must approve the call. Does not reject. Absent: no approval needed. */
  needsApproval?(args: JsonObject, context: ToolApprovalContext): Promise<boolean>;
  /** Runs the tool. @returns a result in its wire form, or `LATER`. */
  run(args: unknown, context: ToolCallContext): Promise<unknown>;
}

/** Runs a call and bounds its result. Never rejects. @returns LATER if the outcome arrives as a command. */
export async function runTool(
  tool: RunnableTool,
  args: JsonObject,
  context: Omit<ToolCallContext, 'edited'>,
): Promise<CallEnding | typeof LATER> {
  const edited = new Set<string>();
  const ending = await outcomeOf(tool, args, {
    ...context,
    edited: (path) => {
      if (edited.size < BOUNDS.editedPathsPerCallMax && EditedPath.safeParse(path).success) edited.add(path);
    },
  });
  if (ending !== LATER) return withEdited(ending, [...edited]);
  return tool.announced.traits.long_running ? LATER : failed('it returned LATER and is not declared longRunning');
}

async function outcomeOf(
  tool: RunnableTool,
  args: JsonObject,
  context: ToolCallContext,
): Promise<CallEnding | typeof LATER> {
  try {
    const checked = await tool.check(args);
    if ('problem' in checked) return failed(checked.problem, 'invalid_call_arguments');
    if (context.abortSignal.aborted) return cancelledBefore(messageOf(context.abortSignal.reason));
    const returned = await tool.run(checked.args, context);
    return returned === LATER ? LATER : bounded(resultOf(returned));
  } catch (error) {
    if (context.abortSignal.aborted) return { status: 'cancelled', result: textResult('cancelled', true) };
    return failed(messageOf(error));
  }
}

function resultOf(returned: unknown): CallEnding {
  if (typeof returned === 'string') return { status: 'ok', result: textResult(returned, false) };
  const read = readStrictly(ToolResult, returned);
  if (!read.ok) return failed(`the tool returned an invalid result: ${problemSentences(read.problems)[0]}`);
  return { status: read.data.is_error ? 'error' : 'ok', result: read.data };
}

function bounded(ending: CallEnding): CallEnding {
  const bytes = Buffer.byteLength(JSON.stringify(ending));
  const { outcomeMaxBytes } = SERVED_BOUNDS;
  if (bytes <= outcomeMaxBytes) return ending;
  const message = `the call ran; its result has ${bytes} bytes as JSON; the limit is ${outcomeMaxBytes}`;
  return failed(message, 'tool_result_too_large');
}

// An invalid or large list of edited files must not cost the tool's result.
function withEdited(ending: CallEnding, edited: readonly string[]): CallEnding {
  if (edited.length === 0) return ending;
  const all = { ...ending, edited: [...edited] };
  return Buffer.byteLength(JSON.stringify(all)) <= SERVED_BOUNDS.outcomeMaxBytes ? all : ending;
}

/** The error code of a failed call; undefined for any other ending. */
export function codeOf({ status, result }: CallEnding): string | undefined {
  const code = status === 'error' ? result.detail?.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** The ending of a failed call. */
export function failed(message: string, code = 'tool_failed'): CallEnding {
  return { status: 'error', result: textResult(cutText(message, 16_384), true, { code }) };
}

/** The ending of a call that was cancelled before its start. */
export function cancelledBefore(reason: string): CallEnding {
  return { status: 'cancelled', result: textResult(`cancelled before the tool ran: ${reason}`, true) };
}

function textResult(text: string, is_error: boolean, detail?: JsonObject): ToolResult {
  return { content: [{ type: 'text', text }], is_error, ...(detail ? { detail } : {}) };
}

function messageOf(error: unknown): string {
  return String((error as Partial<Error> | null)?.message ?? error);
}
