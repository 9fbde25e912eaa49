/**
 * Serves commands on a Unix socket. The process needs no keys, so it protects those of the host from the commands.
 *
 * RUNNER-1: When the connection of a command ends, its process group is terminated: the host cancels, exits or dies.
 * RUNNER-2: Output is not buffered here. A command waits until the host has received its output.
 * RUNNER-3: `ended` is sent after the process group has ended, and not if the runner itself stops.
 */
import { once } from 'node:events';
import { lstat, rm, stat } from 'node:fs/promises';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { cutText } from '@coxswain/protocol';
import { commandEnvironment } from './command-environment.ts';
import { type AnswerFrame, lineOf, RunFrame, readFrames } from './command-frames.ts';
import { runInGroup } from './process-group.ts';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { messageOf, systemCode } from './tool-problem.ts';

/** The socket cannot be used: another process serves it, or its folder is missing or not writable. */
export class CommandSocketError extends Error {
  override readonly name = 'CommandSocketError';
  readonly code = 'command_socket_unusable';
}

/** A running command runner. */
export interface CommandRunner {
  /** Checks that the socket answers. Contract: rejects with the reason if it does not. */
  ping(): Promise<void>;
  /**
   * Terminates all commands within the grace periods of process groups, and closes the socket. Hosts report these calls
   * as interrupted.
   */
  stop(): Promise<void>;
}

/**
 * Listens on a Unix socket that only the user of this process may use (mode 0600), and runs the commands that it
 * receives. A leftover socket of a killed process is replaced.
 * @param path absolute; the system limits it to about 100 bytes.
 * @throws CommandSocketError
 */
export async function startCommandRunner(path: string): Promise<CommandRunner> {
  let isStopping = false;
  const running = new Map<AbortController, Promise<void>>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    // The `close` event and the reader of frames report the loss of a connection.
    socket.on('error', () => socket.destroy());
    if (running.size >= TOOL_BOUNDS.commandsAtOnceMax) return void refuseFull(socket);
    const leaving = new AbortController();
    const served = serveCommand(socket, leaving, () => isStopping);
    running.set(
      leaving,
      served.finally(() => running.delete(leaving)),
    );
  });
  // Refused connections are open for a moment as well.
  server.maxConnections = 2 * TOOL_BOUNDS.commandsAtOnceMax;
  try {
    await removeDeadSocket(path);
    await listenPrivately(server, path);
  } catch (error) {
    if (error instanceof CommandSocketError) throw error;
    throw new CommandSocketError(`commands cannot be served at ${path}: ${messageOf(error)}`, { cause: error });
  }
  return {
    async ping() {
      if (!(await isAnswered(path))) throw new Error(`no process answers at ${path}`);
    },
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      isStopping = true;
      for (const leaving of running.keys()) leaving.abort();
      await Promise.all(running.values());
      await closed;
    },
  };
}

/** Runs the command of one connection until `leaving` aborts. Never rejects. (RUNNER-1) */
async function serveCommand(socket: Socket, leaving: AbortController, isStopping: () => boolean): Promise<void> {
  const leave = () => leaving.abort();
  socket.once('close', leave);
  const destroy = () => socket.destroy();
  leaving.signal.addEventListener('abort', destroy);
  const late = setTimeout(destroy, TOOL_BOUNDS.commandRequestWithinMs);
  try {
    const frames = readFrames(socket, RunFrame);
    const first = await firstFrame(frames);
    clearTimeout(late);
    leaving.signal.removeEventListener('abort', destroy);
    if (first === null) return;
    if (first.type === 'refused') return await answerLast(socket, first);
    // The end of the host's side cancels the command, and so does any further frame.
    void frames.next().then(leave, leave);
    const last = await runFrame(first, socket, leaving.signal);
    // An end that the host did not request is not reported as `ended`. (RUNNER-3)
    if (!isStopping()) await answerLast(socket, last);
  } finally {
    clearTimeout(late);
    socket.destroy();
  }
}

type Refusal = Extract<AnswerFrame, { type: 'refused' }>;

async function firstFrame(frames: AsyncGenerator<RunFrame, void>): Promise<RunFrame | Refusal | null> {
  try {
    const { value } = await frames.next();
    // A peer that sends nothing only checks whether the socket answers.
    return value ?? null;
  } catch (error) {
    return refused('tool_unavailable', `the command runner cannot read the request: ${messageOf(error)}`);
  }
}

/** @returns the last frame of the connection. */
async function runFrame(
  { shell, command, cwd, inherit, env, timeout_ms }: RunFrame,
  socket: Socket,
  signal: AbortSignal,
): Promise<AnswerFrame> {
  const isFolder = await stat(cwd).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (!isFolder)
    return refused('tool_failed', `the command runner has no folder ${cwd}: it needs the same folders as the host`);
  try {
    const end = await runInGroup(
      {
        file: shell,
        args: ['-c', command],
        cwd,
        env: commandEnvironment(process.env, inherit, env),
        timeoutMs: timeout_ms,
        onOutput: (chunk) => sendOutput(socket, chunk),
      },
      signal,
    );
    const { why, exitCode, exitSignal, leftovers } = end;
    return { type: 'ended', why, exit_code: exitCode, exit_signal: exitSignal, leftovers };
  } catch (error) {
    return refused('tool_failed', `the command could not be started: ${messageOf(error)}`);
  }
}

/**
 * @returns undefined if more can be sent now. Otherwise a promise that resolves once the host has received the output,
 *   or the connection has closed. (RUNNER-2)
 */
function sendOutput(socket: Socket, chunk: Buffer): Promise<void> | undefined {
  if (socket.destroyed || socket.write(lineOf({ type: 'output', data: chunk.toString('base64') }))) return undefined;
  return new Promise((resolve) => {
    const taken = () => {
      socket.off('drain', taken).off('close', taken);
      resolve();
    };
    socket.on('drain', taken).on('close', taken);
  });
}

function refused(code: Refusal['code'], message: string): Refusal {
  return { type: 'refused', code, message: cutText(message, 1_000) };
}

async function refuseFull(socket: Socket): Promise<void> {
  const message = `the command runner already runs ${TOOL_BOUNDS.commandsAtOnceMax} commands, which is the limit`;
  await answerLast(socket, refused('tool_unavailable', message));
}

/** Sends the last frame. Resolves once the host has closed the connection, or does not read it in time. */
async function answerLast(socket: Socket, frame: AnswerFrame): Promise<void> {
  if (socket.destroyed) return;
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const late = setTimeout(() => socket.destroy(), TOOL_BOUNDS.commandRequestWithinMs);
  socket.end(lineOf(frame));
  // Further input of the host is dropped. If the connection were closed earlier, the host could lose the frame.
  socket.resume();
  await closed;
  clearTimeout(late);
}

async function removeDeadSocket(path: string): Promise<void> {
  const found = await lstat(path).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return null;
    throw error;
  });
  if (found === null) return;
  if (!found.isSocket()) throw new CommandSocketError(`commands cannot be served at ${path}: it is not a socket`);
  if (await isAnswered(path))
    throw new CommandSocketError(`commands cannot be served at ${path}: another process serves it (EADDRINUSE)`);
  await rm(path, { force: true });
}

/** Whether a process accepts connections at a socket. */
async function isAnswered(path: string): Promise<boolean> {
  const socket = createConnection(path);
  try {
    await once(socket, 'connect');
    return true;
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ECONNREFUSED' || code === 'ENOENT') return false;
    throw error;
  } finally {
    socket.destroy();
  }
}

async function listenPrivately(server: Server, path: string): Promise<void> {
  // `listen` reports EACCES for a missing folder too.
  await stat(dirname(path)).catch((error: unknown) => {
    if (systemCode(error) !== 'ENOENT') throw error;
    throw new CommandSocketError(`commands cannot be served at ${path}: there is no folder ${dirname(path)}`);
  });
  const listening = once(server, 'listening');
  // `listen` creates the socket within this call, so the mask affects no other file.
  const mask = process.umask(0o177);
  try {
    server.listen(path);
  } finally {
    process.umask(mask);
  }
  await listening;
}
