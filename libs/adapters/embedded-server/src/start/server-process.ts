import { type ChildProcess, spawn } from 'node:child_process';
import type { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { NatsServerStopFailedError } from '../server-errors.ts';

/**
 * A server that does not outlive the process that started it, even if that process is killed.
 *
 * P1. The server starts behind a gate: a shell that waits for the word `go` on a pipe and then *becomes* the server
 *     (`exec`). So the server is a direct child, with its own process id and exit code.
 * P2. A watchdog starts before `go`. It reads from another pipe whose write end only this process holds. If this
 *     process ends, even by kill -9, the watchdog reads the end of the file and ends the server. If this process ends
 *     before `go`, the gate reads the end of the file and never becomes a server. So there is no gap.
 * P3. If the watchdog is killed, this process starts another one, up to {@link maxWatchdogs} in total.
 * P4. Gate and watchdog run in their own sessions. So a Ctrl-C at the terminal reaches only this process, which first
 *     drains and then stops the server.
 *
 * Windows has no such shell and needs none: Node puts its children into a job object that ends with it.
 */

/** Becomes the server at the word `go`. Anything else, or the end of the pipe, ends it. */
const gateScript = 'IFS= read -r word; [ "$word" = go ] && exec "$@" </dev/null; exit 125';

/**
 * A line means that the server has ended. The end of the pipe means that the parent process is dead: end the server.
 */
const watchdogScript = `
IFS= read -r word && exit 0
kill -TERM "$1" 2>/dev/null || exit 0
n=0
while [ "$n" -lt 10 ]; do
  sleep 0.1
  kill -0 "$1" 2>/dev/null || exit 0
  n=$((n + 1))
done
kill -KILL "$1" 2>/dev/null`;

/** Maximum watchdogs per server. Beyond it, another program on the machine presumably kills them. */
const maxWatchdogs = 5;

/** How a server process ended. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A started server process. */
export interface ServerProcess {
  readonly pid: number;
  /** Resolves when it has ended. Never rejects. */
  readonly exited: Promise<ProcessExit>;
  /** Opens the gate: the process becomes the server. */
  open(): void;
  /** Sends a signal. No effect after its end. */
  kill(signal: NodeJS.Signals): void;
}

/**
 * Settings of the server's garbage collector: it runs at 50 % garbage instead of 100 %, and more often near a memory
 * limit. Most data of a server belongs to idle sessions, and each journal stream keeps its current block in memory.
 * https://pkg.go.dev/runtime
 */
const COLLECTOR = { GOGC: '50', GOMEMLIMIT: '768MiB' };

/** The program to run. */
export interface ServerCommand {
  readonly binary: string;
  readonly args: readonly string[];
  /** The file descriptor for its output. */
  readonly outputFd: number;
  readonly cwd: string;
}

/**
 * Starts a server process behind its gate, with a watchdog. The server itself starts at `open()`; on Windows, which has
 * no gate, at once.
 *
 * @throws the system's error if no process can be started.
 */
export async function spawnServer(command: ServerCommand): Promise<ServerProcess> {
  const gated = process.platform !== 'win32';
  const [file, args] = gated
    ? ['/bin/sh', ['-c', gateScript, 'cox-nats-gate', command.binary, ...command.args]]
    : [command.binary, [...command.args]];
  const child = spawn(file, args, {
    cwd: command.cwd,
    // The server gets only a few variables: this process's environment contains keys of model providers.
    env: { ...COLLECTOR, ...onlyNeeded(process.env) },
    stdio: [gated ? 'pipe' : 'ignore', command.outputFd, command.outputFd],
    detached: gated,
    windowsHide: true,
  });
  const exited = new Promise<ProcessExit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  await started(child);
  const pid = pidOf(child);
  if (gated) watch(pid, exited);
  return {
    pid,
    exited,
    open: () => {
      if (!child.stdin) return;
      // The gate may have been killed already. `exited` reports that.
      child.stdin.on('error', ignoreBrokenPipe);
      child.stdin.end('go\n');
    },
    kill: (signal) => void child.kill(signal),
  };
}

const diesAfterKillMs = 5_000;

/**
 * Ends a server process by SIGTERM, and by SIGKILL after `stopTimeoutMs` milliseconds.
 *
 * @throws NatsServerStopFailedError if it still runs after both.
 */
export async function endServer(server: ServerProcess, stopTimeoutMs: number): Promise<void> {
  server.kill('SIGTERM');
  if (await endsWithin(server, stopTimeoutMs)) return;
  server.kill('SIGKILL');
  if (await endsWithin(server, diesAfterKillMs)) return;
  throw new NatsServerStopFailedError(server.pid, stopTimeoutMs + diesAfterKillMs);
}

async function endsWithin(server: ServerProcess, boundMs: number): Promise<boolean> {
  const bound = new AbortController();
  const ended = server.exited.then(() => true);
  const late = sleep(boundMs, false, { signal: bound.signal }).catch(() => false);
  const result = await Promise.race([ended, late]);
  bound.abort();
  return result;
}

function watch(pid: number, exited: Promise<ProcessExit>): void {
  let over = false;
  let pipe: Writable | null = null;
  const start = (count: number) => {
    const watchdog = spawn('/bin/sh', ['-c', watchdogScript, 'cox-nats-watchdog', String(pid)], {
      env: onlyNeeded(process.env),
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    pipe = watchdog.stdin;
    pipe?.on('error', ignoreBrokenPipe);
    const lost = (reason: string) => {
      if (over) return;
      if (count < maxWatchdogs) return start(count + 1);
      process.emitWarning(`The watchdog of nats-server (process ${pid}) was lost ${count} times, last: ${reason}. If \
this process is killed, the server will continue to run.`);
    };
    watchdog.once('error', (error) => lost(error.message));
    watchdog.once('exit', (code, signal) => lost(`ended by ${signal ?? code}`));
  };
  start(1);
  void exited.then(() => {
    over = true;
    pipe?.end('stopped\n');
  });
}

function started(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve).once('error', reject);
  });
}

function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error('a started process has no id');
  return child.pid;
}

function onlyNeeded(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const needed = /^(PATH|HOME|TMPDIR|TMP|TEMP|TZ|GO[A-Z]+|SYSTEMROOT|WINDIR|PROGRAMDATA)$/i;
  return Object.fromEntries(Object.entries(env).filter(([name]) => needed.test(name)));
}

function ignoreBrokenPipe(error: NodeJS.ErrnoException): void {
  // The reader has ended. Its 'exit' event is handled elsewhere.
  if (error.code !== 'EPIPE' && error.code !== 'ECONNRESET') throw error;
}
