/**
 * The tools of a run. Each writes into a log of its own what it really does, with the clock that all processes share:
 * the outside world, against which journals are held.
 */
import { appendFileSync } from 'node:fs';
import { defineTool, type ToolCallContext } from '@coxswain/client';
import { z } from 'zod';

const schema = z.object({ ms: z.number().int().nonnegative().max(60_000), what: z.string() });

function note(what: 'start' | 'end', tool: string, context: ToolCallContext, detail: object): void {
  const { toolCallId: callId, idempotencyKey, epoch, ref } = context;
  const atMs = Number(process.hrtime.bigint()) / 1e6;
  const line = { what, atMs, pid: process.pid, tool, session: ref.sessionId, callId, key: idempotencyKey, epoch };
  // One write below the size of a pipe's buffer, appended: lines of many processes do not mix.
  appendFileSync(process.env.CHAOS_EFFECTS as string, `${JSON.stringify({ ...line, ...detail })}\n`);
}

/** A tool that takes the time that it is told to, and stops when it is told to. */
function takingTime(tool: string) {
  return async ({ ms, what }: z.infer<typeof schema>, context: ToolCallContext): Promise<string> => {
    note('start', tool, context, { ms });
    const { abortSignal: signal } = context;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        resolve();
      });
    });
    note('end', tool, context, { isAborted: signal.aborted });
    signal.throwIfAborted();
    return `${what} by ${process.pid}`;
  };
}

export default [
  defineTool({
    name: 'read_tide',
    description: 'Reads the tide table. May run again.',
    idempotent: true,
    inputSchema: schema,
    execute: takingTime('read_tide'),
  }),
  defineTool({
    name: 'book_berth',
    description: 'Books a berth. Must not run twice.',
    inputSchema: schema,
    execute: takingTime('book_berth'),
  }),
  defineTool({
    name: 'unload_cargo',
    description: 'Unloads a ship; its outcome comes when it is there. Must not run twice.',
    longRunning: true,
    inputSchema: schema,
    execute: takingTime('unload_cargo'),
  }),
];
