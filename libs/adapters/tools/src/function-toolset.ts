/**
 * A toolset of functions that run in this process: the base of built-in tools and of code tools.
 *
 * F1: `call` never rejects. An exception of a function is an `error` outcome, or `cancelled` if its signal has aborted.
 * F2: Closing aborts every running call, and waits for it up to the abort grace period.
 */
import type { ToolCall, ToolOutcome, Toolset } from '@coxswain/ports';
import {
  BOUNDS,
  type JsonObject,
  type ToolApprovalContext,
  type ToolCallContext,
  type ToolDefinition,
} from '@coxswain/protocol';
import { cancelled, failed, unavailable } from './tool-outcome.ts';
import { messageOf, ToolProblem } from './tool-problem.ts';

/** One tool and its function. */
export interface FunctionTool {
  readonly definition: ToolDefinition;
  run(args: JsonObject, context: ToolCallContext): Promise<ToolOutcome>;
  /** Whether a person must approve the call. Never rejects. */
  readonly needsApproval?: ((args: JsonObject, context: ToolApprovalContext) => Promise<boolean>) | undefined;
  /** Requests the stop of a call that `run` has only accepted. */
  readonly stop?: ((idempotencyKey: string, reason: string) => void | Promise<void>) | undefined;
}

/** Creates a toolset of functions. The caller ensures that names differ. */
export function functionToolset(tools: readonly FunctionTool[]): Toolset {
  const byName = new Map(tools.map((tool) => [tool.definition.name, tool]));
  const running = new Map<AbortController, { name: string; ended: Promise<unknown> }>();
  let closed = false;

  async function call(request: ToolCall, signal: AbortSignal): Promise<ToolOutcome> {
    const tool = byName.get(request.tool);
    if (tool === undefined) return unavailable(`there is no tool ${request.tool}`);
    if (closed) return unavailable('the tools of this session are closed');
    if (signal.aborted) return cancelled('cancelled before the tool ran');

    const stop = new AbortController();
    const forward = () => stop.abort(signal.reason);
    signal.addEventListener('abort', forward, { once: true });
    const ended = runOne(tool, request, stop.signal);
    running.set(stop, { name: request.tool, ended });
    try {
      return await ended;
    } finally {
      running.delete(stop);
      signal.removeEventListener('abort', forward);
    }
  }

  async function close(): Promise<readonly string[]> {
    closed = true;
    const open = [...running];
    for (const [stop] of open) stop.abort(new Error('the tools of this session are closed'));
    await settledWithin(
      open.map(([, { ended }]) => ended),
      BOUNDS.abortGraceMs,
    );
    return open
      .filter(([stop]) => running.has(stop))
      .map(([, { name }]) => `${name} did not stop within ${BOUNDS.abortGraceMs} ms`);
  }

  return {
    tools: tools.map(({ definition }) => definition),
    call,
    needsApproval: async ({ tool, args, callId, ref }, signal) => {
      const found = byName.get(tool);
      // Without the function there is no answer, so that a person must approve.
      if (!found?.needsApproval || closed) return true;
      return found.needsApproval(args, { toolCallId: callId, ref, abortSignal: signal });
    },
    // A later process cannot ask for the outcome of a function.
    probe: async () => ({ state: 'unknown' }),
    async stop(idempotencyKey, name, reason) {
      const tool = byName.get(name);
      if (!tool?.stop) return false;
      try {
        await tool.stop(idempotencyKey, reason);
        return true;
      } catch {
        // After an exception the session does not wait for an outcome.
        return false;
      }
    },
    close,
  };
}

async function runOne(tool: FunctionTool, request: ToolCall, signal: AbortSignal): Promise<ToolOutcome> {
  // A function may fail after it has edited files. These edits are reported as well.
  const edited: string[] = [];
  const outcome = await outcomeOfRun(tool, request, signal, edited);
  return edited.length > 0 ? { ...outcome, edited } : outcome;
}

async function outcomeOfRun(
  tool: FunctionTool,
  request: ToolCall,
  signal: AbortSignal,
  edited: string[],
): Promise<ToolOutcome> {
  try {
    return await tool.run(request.args, {
      abortSignal: signal,
      toolCallId: request.callId,
      idempotencyKey: request.idempotencyKey,
      epoch: request.epoch,
      ref: request.ref,
      progress: request.onProgress,
      edited: (path) => {
        if (edited.length < BOUNDS.editedPathsPerCallMax) edited.push(path);
      },
      feedback: request.onFeedback,
    });
  } catch (error) {
    if (signal.aborted) return cancelled('cancelled');
    if (error instanceof ToolProblem) return failed(error.code, error.message, error.detail);
    return failed('tool_failed', messageOf(error));
  }
}

async function settledWithin(promises: readonly Promise<unknown>[], milliseconds: number): Promise<void> {
  if (promises.length === 0) return;
  let timer: NodeJS.Timeout | undefined;
  const grace = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([Promise.allSettled(promises), grace]);
  clearTimeout(timer);
}
