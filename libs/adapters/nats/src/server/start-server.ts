import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { removeConnection, writeConnection } from './connection-file.ts';
import { folderTrouble, makeFolder } from './make-folder.ts';
import { markProcess } from './process-birth.ts';
import { serverConfig } from './server-config.ts';
import {
  NatsServerStartFailedError,
  NatsServerStopFailedError,
  PortInUseError,
  ServerOptionInvalidError,
  type StateDirHolder,
  StateDirUnusableError,
} from './server-errors.ts';
import { openServerLog, type ServerLog } from './server-log.ts';
import { endServer, type ServerProcess, spawnServer } from './server-process.ts';
import { waitUntilReady } from './server-readiness.ts';
import { requireServerVersion } from './server-version.ts';
import { claimStateDir, type StateDirClaim } from './state-dir-claim.ts';

/** What to start, and where it keeps its state. */
export interface StartServerOptions {
  /** A nats-server, as `findServer` gives it. */
  readonly binary: string;
  /** Folder for the store, configuration, log and `connection.json`; made when missing. One server at a time. */
  readonly stateDir: string;
  /** Default: a free one. */
  readonly port?: number | undefined;
  /** A loopback address or `localhost`. Default `127.0.0.1`. */
  readonly host?: string | undefined;
  /** Letters, digits, `-` and `_`, at least 16 of them. Default: 256 random bits. */
  readonly token?: string | undefined;
  /** Whether each write is on the disk before it is acknowledged. Default true; costs about 2 to 3 times per append. */
  readonly syncAlways?: boolean | undefined;
  /** Bound for coming up, in milliseconds; a large store is read first. Default 60,000. */
  readonly startTimeoutMs?: number | undefined;
  /** Who starts it, for those who find its folder taken. */
  readonly holder?: StateDirHolder | undefined;
  /** How long a stopping server may take before it is killed, in milliseconds. Default 10,000. */
  readonly stopTimeoutMs?: number | undefined;
}

/** A server that is up. It ends with this process, however this process ends. */
export interface RunningServer {
  /** Without credentials: `nats://127.0.0.1:4222`. */
  readonly url: string;
  readonly token: string;
  readonly port: number;
  /** Process id of the nats-server. */
  readonly pid: number;
  /** `2.15.1` */
  readonly version: string;
  readonly logFile: string;
  /**
   * Stops the server and gives its state directory back. Calls after the first wait for the same stop.
   *
   * @throws NatsServerStopFailedError when it outlives even SIGKILL.
   */
  stop(): Promise<void>;
  /**
   * Resolves when the server has ended, called for or not, and its state directory is free again. Rejects only when
   * that directory can no longer be written.
   */
  readonly exited: Promise<ServerExit>;
}

/** How a server ended. */
export interface ServerExit {
  /** Whether it ended because of `stop()`. */
  readonly expected: boolean;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The end of its log, when the end was not expected; otherwise empty. */
  readonly logTail: string;
}

/**
 * Starts a nats-server with JetStream on loopback and waits until it lets a client in.
 *
 * @throws NatsServerUnusableError, NatsServerTooOldError for a binary that is no good.
 * @throws ServerOptionInvalidError for a host that is not loopback, or a token or port that cannot be.
 * @throws StateDirUnusableError where the folder cannot be made or written, or is none.
 * @throws StateDirInUseError naming the process that holds the state directory; PortInUseError.
 * @throws NatsServerStartFailedError quoting the log, when the server ends, or is not up within the bound.
 */
export async function startServer(options: StartServerOptions): Promise<RunningServer> {
  const settings = settingsFrom(options);
  const version = await requireServerVersion(settings.binary);
  await makeFolder(settings.stateDir);
  const claim = await claimStateDir(settings.stateDir, options.holder).catch((error: unknown) => {
    throw (error as NodeJS.ErrnoException).syscall === undefined
      ? error
      : new StateDirUnusableError(settings.stateDir, folderTrouble(error), { cause: error });
  });
  try {
    const log = await openServerLog(settings.stateDir);
    try {
      return await startClaimed(settings, version, claim, log);
    } finally {
      await log.close();
    }
  } catch (error) {
    // A server that could not be ended still uses the directory.
    if (!(error instanceof NatsServerStopFailedError)) await claim.release();
    throw error;
  }
}

interface Settings {
  readonly binary: string;
  readonly stateDir: string;
  readonly port: number;
  readonly host: string;
  readonly token: string;
  readonly syncAlways: boolean;
  readonly startTimeoutMs: number;
  readonly stopTimeoutMs: number;
}

function settingsFrom(options: StartServerOptions): Settings {
  const { host = '127.0.0.1', port = 0, token = randomBytes(32).toString('base64url') } = options;
  if (host !== 'localhost' && host !== '::1' && !/^127(\.\d{1,3}){3}$/.test(host)) {
    throw new ServerOptionInvalidError(`the embedded server listens on loopback only, not on ${host}`);
  }
  if (!/^[\w-]{16,}$/.test(token)) {
    throw new ServerOptionInvalidError('a token must be 16 or more letters, digits, "-" and "_"');
  }
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new ServerOptionInvalidError(`${port} is no port`);
  }
  return {
    binary: resolve(options.binary),
    stateDir: resolve(options.stateDir),
    // Listening under a name would listen on every address that the name has.
    host: host === 'localhost' ? '127.0.0.1' : host,
    port,
    token,
    syncAlways: options.syncAlways ?? true,
    startTimeoutMs: options.startTimeoutMs ?? 60_000,
    stopTimeoutMs: options.stopTimeoutMs ?? 10_000,
  };
}

async function startClaimed(
  settings: Settings,
  version: string,
  claim: StateDirClaim,
  log: ServerLog,
): Promise<RunningServer> {
  const { stateDir, host, token } = settings;
  let server: ServerProcess | undefined;
  try {
    // Left by a process that was killed; from here on it would name a server that is not this one.
    await removeConnection(stateDir);
    const portsDir = await emptyPortsDir(stateDir);
    const args = ['-c', await writeConfig(settings, log.path, portsDir)];
    server = await spawnServer({ binary: settings.binary, args, outputFd: log.fd, cwd: stateDir });
    const mark = await markProcess(server.pid);
    if (!mark) throw new Error('it ended before it began');
    await claim.recordServer(mark);
    server.open();
    const port = await waitUntilReady({ server, portsDir, host, token, timeoutMs: settings.startTimeoutMs });
    const url = `nats://${host.includes(':') ? `[${host}]` : host}:${port}`;
    await writeConnection(stateDir, mark, { url, token });
    return running(server, { url, token, port, version }, settings, claim, log);
  } catch (error) {
    if (server) await endServer(server, settings.stopTimeoutMs);
    const tail = await log.tail();
    if (/Error listening on port.*address already in use/.test(tail)) throw new PortInUseError(settings.port);
    const reason = error instanceof Error ? error.message : String(error);
    throw new NatsServerStartFailedError(reason, log.path, tail, { cause: error });
  }
}

function running(
  server: ServerProcess,
  reached: Pick<RunningServer, 'url' | 'token' | 'port' | 'version'>,
  { stateDir, stopTimeoutMs }: Settings,
  claim: StateDirClaim,
  log: ServerLog,
): RunningServer {
  let stopping: Promise<void> | undefined;
  const exited = server.exited.then(async ({ code, signal }): Promise<ServerExit> => {
    const expected = stopping !== undefined;
    await removeConnection(stateDir);
    await claim.release();
    return { expected, code, signal, logTail: expected ? '' : await log.tail() };
  });
  const stop = async () => {
    await endServer(server, stopTimeoutMs);
    await exited;
  };
  return {
    ...reached,
    pid: server.pid,
    logFile: log.path,
    exited,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

async function emptyPortsDir(stateDir: string): Promise<string> {
  const portsDir = join(stateDir, 'ports');
  await rm(portsDir, { recursive: true, force: true });
  await mkdir(portsDir, { mode: 0o700 });
  return portsDir;
}

async function writeConfig(settings: Settings, logFile: string, portsDir: string): Promise<string> {
  const { stateDir, host, port, token, syncAlways } = settings;
  const path = join(stateDir, 'nats-server.conf');
  // Removed first: a mode is set only on a file that is made, and this one holds the token.
  await rm(path, { force: true });
  await writeFile(path, serverConfig({ host, port: port || -1, token, stateDir, syncAlways, logFile, portsDir }), {
    mode: 0o600,
  });
  return path;
}
