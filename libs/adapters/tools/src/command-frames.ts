/**
 * The protocol between a session host and a command runner. Each command has its own connection on a Unix socket, and
 * each frame is a line of JSON. The host sends one `run` frame, and ends its side of the connection to cancel. The
 * runner answers with `output` frames and one last frame: `ended`, or `refused` if nothing ran. If a connection ends
 * without a last frame, the outcome of the command is unknown.
 */
import type { Socket } from 'node:net';
import * as z from 'zod';
import { TOOL_BOUNDS } from './tool-bounds.ts';

const TIMER_MAX_MS = 2 ** 31 - 1;

/**
 * A command to run. `inherit` and `env` are those of {@link RunCommandOptions}, applied to the runner's environment.
 */
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

/** A frame of the runner. `output` contains bytes in base64. `refused`: the command did not start. */
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

/** Formats a frame as a line. */
export function lineOf(frame: RunFrame | AnswerFrame): string {
  return `${JSON.stringify(frame)}\n`;
}

/**
 * Reads frames until the peer ends its side, at the speed of the consumer. The socket stays open.
 * @throws the socket's errors, and an Error if a line is too long, is cut off or does not match the schema.
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
