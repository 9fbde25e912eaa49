/** Runs calls of a tool that arrived over the bus, and answers whether they need an approval. */
import {
  APPROVAL_CHECK_MS,
  BOUNDS,
  type CallEnding,
  cancelledCall,
  EditedPath,
  failedCall,
  type JsonObject,
  LATER,
  problemSentences,
  type ReceivedQuestion,
  type RunnableCall,
  readStrictly,
  SERVED_BOUNDS,
  type ServedHookAnswer,
  type StartedWork,
  type ToolApprovalContext,
  type ToolCallContext,
  ToolResult,
  type WorkRequest,
} from '@coxswain/protocol';

/** A tool or a model step as its process serves it. */
export interface ServableTool {
  readonly announced: { readonly name: string; readonly traits: { readonly long_running: boolean } };
  /** Validates arguments from the bus. @returns the input for `run`, or a description of the problem. */
  check(args: JsonObject): Promise<{ readonly args: unknown } | { readonly problem: string }>;
  /** Whether a person must approve the call. Does not reject. Absent: no approval needed. */
  needsApproval?(args: JsonObject, context: ToolApprovalContext): Promise<boolean>;
  /** Runs the tool. @returns a result in its wire form, or `LATER`. */
  run(args: unknown, context: ToolCallContext): Promise<unknown>;
}

/** The work of a request for a tool or a step: its call, or the answer whether a person must approve it. */
export function toolWork(
  tool: ServableTool,
  { approval, call_id }: Pick<WorkRequest, 'approval' | 'call_id'>,
  kind: StartedWork['kind'] = 'tool',
): RunnableCall | ((question: ReceivedQuestion) => Promise<ServedHookAnswer>) {
  if (approval) return (question) => answerApproval(tool, call_id, question);
  const { name, traits } = tool.announced;
  return { kind, name, isLongRunning: traits.long_running, run: (args, context) => runTool(tool, args, context) };
}

/** True without a function that decides it, or if the function does not answer in time. */
async function answerApproval(
  { needsApproval }: ServableTool,
  toolCallId = '',
  { ref, args, signal }: ReceivedQuestion,
): Promise<ServedHookAnswer> {
  const late = new AbortController();
  const isLate = new Promise<true>((resolve) => late.signal.addEventListener('abort', () => resolve(true)));
  const timer = setTimeout(() => late.abort(), APPROVAL_CHECK_MS);
  timer.unref();
  const abortSignal = AbortSignal.any([signal, late.signal]);
  const needed = needsApproval?.(args, { toolCallId, ref, abortSignal }) ?? true;
  const raw = await Promise.race([needed, isLate]);
  clearTimeout(timer);
  return { status: 'returned', raw };
}

/** Runs a call and bounds its result. Never rejects. @returns LATER if the outcome arrives as a command. */
async function runTool(
  tool: ServableTool,
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
  return tool.announced.traits.long_running ? LATER : failedCall('it returned LATER and is not declared longRunning');
}

async function outcomeOf(
  tool: ServableTool,
  args: JsonObject,
  context: ToolCallContext,
): Promise<CallEnding | typeof LATER> {
  const { abortSignal } = context;
  try {
    const checked = await tool.check(args);
    if ('problem' in checked) return failedCall(checked.problem, 'invalid_call_arguments');
    if (abortSignal.aborted) return cancelledCall(`cancelled before the tool ran: ${messageOf(abortSignal.reason)}`);
    const returned = await tool.run(checked.args, context);
    return returned === LATER ? LATER : bounded(endingOf(returned));
  } catch (error) {
    return abortSignal.aborted ? cancelledCall('cancelled') : failedCall(messageOf(error));
  }
}

function endingOf(returned: unknown): CallEnding {
  if (typeof returned === 'string')
    return { status: 'ok', result: { content: [{ type: 'text', text: returned }], is_error: false } };
  const read = readStrictly(ToolResult, returned);
  if (!read.ok) return failedCall(`the tool returned an invalid result: ${problemSentences(read.problems)[0]}`);
  return { status: read.data.is_error ? 'error' : 'ok', result: read.data };
}

function bounded(ending: CallEnding): CallEnding {
  const bytes = Buffer.byteLength(JSON.stringify(ending));
  const { outcomeMaxBytes } = SERVED_BOUNDS;
  if (bytes <= outcomeMaxBytes) return ending;
  const message = `the call ran; its result has ${bytes} bytes as JSON; the limit is ${outcomeMaxBytes}`;
  return failedCall(message, 'tool_result_too_large');
}

// An invalid or large list of edited files must not cost the tool's result.
function withEdited(ending: CallEnding, edited: readonly string[]): CallEnding {
  if (edited.length === 0) return ending;
  const all = { ...ending, edited: [...edited] };
  return Buffer.byteLength(JSON.stringify(all)) <= SERVED_BOUNDS.outcomeMaxBytes ? all : ending;
}

// A tool may throw any value, even one that cannot be converted to text.
function messageOf(error: unknown): string {
  try {
    return String((error as Partial<Error> | null)?.message ?? error);
  } catch {
    return 'it threw a value that cannot be converted to text';
  }
}
