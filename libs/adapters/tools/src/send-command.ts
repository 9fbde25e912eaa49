/** The host's side of a command runner: sends a command to its socket, so that it never runs in this process. */
import { createConnection, type Socket } from 'node:net';
import type { ToolOutcome } from '@coxswain/ports';
import { AnswerFrame, lineOf, type RunFrame, readFrames } from './command-frames.ts';
import type { GroupEnd } from './process-group.ts';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { lost, unavailable } from './tool-outcome.ts';
import { messageOf, ToolProblem } from './tool-problem.ts';

/** A command for a command runner. */
export type SentCommand = Omit<RunFrame, 'type'>;

/**
 * Runs a command in the command runner that serves a socket. When the signal aborts, the runner terminates the
 * command's process group, and this function waits for its end.
 * @returns the end of the command, or the outcome of the call. `unavailable`: the runner cannot be reached, or runs too
 *   many commands. `lost`: it fell silent or stopped after it had received the command.
 * @throws ToolProblem if the runner could not start the command; the signal's reason if it aborted before.
 */
export async function sendCommand(
  path: string,
  command: SentCommand,
  onOutput: (chunk: Buffer) => void,
  signal: AbortSignal,
): Promise<GroupEnd | ToolOutcome> {
  let socket: Socket;
  try {
    socket = await connectTo(path);
  } catch (error) {
    return unavailable(`the command runner cannot be reached: ${messageOf(error)}`);
  }
  // The reader of frames throws the error of a broken connection.
  socket.on('error', () => undefined);
  const silent = (afterMs: number) => setTimeout(() => socket.destroy(), Math.min(afterMs, 2 ** 31 - 1));
  let late = silent(command.timeout_ms + TOOL_BOUNDS.commandAnswerGraceMs);
  const cancel = () => {
    clearTimeout(late);
    late = silent(TOOL_BOUNDS.commandAnswerGraceMs);
    socket.end();
  };
  try {
    signal.throwIfAborted();
    signal.addEventListener('abort', cancel, { once: true });
    socket.write(lineOf({ type: 'run', ...command }));
    for await (const frame of readFrames(socket, AnswerFrame)) {
      if (frame.type === 'output') onOutput(Buffer.from(frame.data, 'base64'));
      else if (frame.type === 'ended')
        return {
          why: frame.why,
          exitCode: frame.exit_code,
          exitSignal: frame.exit_signal,
          leftovers: frame.leftovers,
        };
      else if (frame.code === 'tool_unavailable') return unavailable(frame.message);
      else throw new ToolProblem(frame.code, frame.message);
    }
    return lost('the command runner stopped while the command ran');
  } catch (error) {
    if (error instanceof ToolProblem || error === signal.reason) throw error;
    return lost(`the connection to the command runner broke while the command ran: ${messageOf(error)}`);
  } finally {
    signal.removeEventListener('abort', cancel);
    clearTimeout(late);
    socket.destroy();
  }
}

/** @throws with the system's code if no process listens at the path; also if it does not accept in time. */
function connectTo(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ path, allowHalfOpen: true });
    const fail = (error: Error) => {
      clearTimeout(late);
      socket.destroy();
      reject(error);
    };
    const late = setTimeout(
      () => fail(new Error('it does not accept the connection (ETIMEDOUT)')),
      TOOL_BOUNDS.commandRequestWithinMs,
    );
    socket.once('error', fail);
    socket.once('connect', () => {
      clearTimeout(late);
      socket.off('error', fail);
      resolve(socket);
    });
  });
}
