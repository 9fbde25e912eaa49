/**
 * The protocol between a session host and a command runner. Each command has a connection of its own on a Unix socket,
 * and each frame is a line of JSON. The host sends one `run` frame and ends its side of the connection to cancel. The
 * runner answers with `output` frames and one last frame: `ended`, or `refused` if nothing ran. A connection that ends
 * without a last frame leaves the outcome of the command unknown.
 */
import type { Socket } from 'node:net';
import * as z from 'zod';
import { TOOL_BOUNDS } from './tool-bounds.ts';

const TIMER_MAX_MS = 2 ** 31 - 1;

/** A command to run; `inherit` and `env` are those of {@link RunCommandOptions}, applied to the runner's environment. */
export const RunFrame = z.strictObject({
  type: z.literal('run'),
  shell: z.string().min(1).max(TOOL_BOUNDS.pathMaxChars),
  command: z.string().min(1).max(TOOL_BOUNDS.commandMaxChars),
  cwd: z.string().startsWith('/').max(TOOL_BOUNDS.pathMaxChars),
  inherit: z.array(z.string()),
  env: z.record(z.string(), z.string()),
  timeout_ms: z.int().min(1).max(TIMER_MAX_MS),
});

export type RunFrame = z.infer<typeof RunFrame>;

/** What a runner answers. `output` holds bytes in base64; `refused` says that the command did not start. */
export const AnswerFrame = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('output'), data: z.base64() }),
  z.strictObject({
    type: z.literal('ended'),
    why: z.enum(['exited', 'timeout', 'aborted']),
    exit_code: z.int().nullable(),
    exit_signal: z.string().max(32).nullable(),
    leftovers: z.boolean(),
  }),
  z.strictObject({
    type: z.literal('refused'),
    code: z.enum(['tool_unavailable', 'tool_failed']),
    message: z.string().max(1_000),
  }),
]);
export type AnswerFrame = z.infer<typeof AnswerFrame>;

/** A frame as a line. */
export function lineOf(frame: RunFrame | AnswerFrame): string {
  return `${JSON.stringify(frame)}\n`;
}

/**
 * Reads frames until the peer ends its side, and reads no faster than they are consumed. The socket stays open.
 * @throws what the socket throws, and an Error if a line is too long, is cut off or does not fit the schema.
 */
export async function* readFrames<T>(socket: Socket, schema: z.ZodType<T>): AsyncGenerator<T, void> {
  let rest = Buffer.alloc(0);
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    rest = Buffer.concat([rest, chunk as Buffer]);
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      const frame = schema.parse(JSON.parse(rest.toString('utf8', 0, end)));
      rest = rest.subarray(end + 1);
      yield frame;
    }
    if (rest.length > TOOL_BOUNDS.commandFrameMaxBytes) throw new Error('the frame is too long');
  }
  if (rest.length > 0) throw new Error('the frame was cut off');
}

const NEWLINE = 0x0a;
