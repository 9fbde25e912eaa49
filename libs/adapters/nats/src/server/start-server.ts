import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { markProcess, StateDirUnusableError } from '@coxswain/ports/discovery';
import { type BackOff, delayAfter } from '@coxswain/protocol';
import { removeConnection, writeConnection } from './connection-file.ts';
import { makeFolder, systemTrouble } from './make-folder.ts';
import { serverConfig } from './server-config.ts';
import {
  NatsServerStartFailedError,
  NatsServerStopFailedError,
  PortInUseError,
  ServerOptionInvalidError,
  type StateDirHolder,
} from './server-errors.ts';
import { openServerLog } from './server-log.ts';
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
  /**
   * Restarts in a row of a server that ends by itself, on the same port and with the same token. Default 0. A server
   * that has run for a minute counts from 0 again.
   */
  readonly restartsMax?: number | undefined;
  /** Called after each restart, with the end of the process before; `restarts` counts this one. Must not throw. */
  readonly onRestart?: ((end: ServerExit) => void) | undefined;
}

/** A server that is up. It ends with this process, however this process ends. */
export interface RunningServer {
  /** Without credentials: `nats://127.0.0.1:4222`. */
  readonly url: string;
  readonly token: string;
  readonly port: number;
  /** Process id of the nats-server; another one after a restart. */
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
   * Resolves when the server has ended, called for or not, is not restarted any further, and its state directory is free
   * again. Rejects only when that directory can no longer be written.
   */
  readonly exited: Promise<ServerExit>;
}

/** How a server ended. */
export interface ServerExit {
  /** Whether it ended because of `stop()`. */
  readonly expected: boolean;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Restarts in a row, those that failed included. */
  readonly restarts: number;
  /** When the end was not expected, the end of its log, or why the last restart failed; otherwise empty. */
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
      : new StateDirUnusableError(settings.stateDir, systemTrouble(error), { cause: error });
  });
  try {
    // Left by a process that was killed; from here on it would name a server that is not this one.
    await removeConnection(settings.stateDir);
    return new SupervisedServer(settings, version, claim, await launch(settings, claim));
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
  readonly restartsMax: number;
  readonly onRestart: StartServerOptions['onRestart'];
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
    throw new ServerOptionInvalidError(`${port} is not a port`);
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
    restartsMax: options.restartsMax ?? 0,
    onRestart: options.onRestart,
  };
}

/** A server process that lets clients in. */
interface Launched {
  readonly process: ServerProcess;
  readonly port: number;
  readonly logFile: string;
  /** The end of its log. */
  readonly tail: () => Promise<string>;
}

/** Starts one server process in a claimed directory, waits until it is ready, and writes down how to reach it. */
async function launch(settings: Settings, claim: StateDirClaim): Promise<Launched> {
  const { stateDir, host, token } = settings;
  const log = await openServerLog(stateDir);
  let server: ServerProcess | undefined;
  try {
    const portsDir = await emptyPortsDir(stateDir);
    const args = ['-c', await writeConfig(settings, log.path, portsDir)];
    server = await spawnServer({ binary: settings.binary, args, outputFd: log.fd, cwd: stateDir });
    const mark = await markProcess(server.pid);
    if (!mark) throw new Error('it ended before it began');
    await claim.recordServer(mark);
    server.open();
    const port = await waitUntilReady({ server, portsDir, host, token, timeoutMs: settings.startTimeoutMs });
    await writeConnection(stateDir, mark, { url: urlOf(host, port), token });
    return { process: server, port, logFile: log.path, tail: () => log.tail() };
  } catch (error) {
    if (server) await endServer(server, settings.stopTimeoutMs);
    const tail = await log.tail();
    if (/Error listening on port.*address already in use/.test(tail)) throw new PortInUseError(settings.port);
    const reason = error instanceof Error ? error.message : String(error);
    throw new NatsServerStartFailedError(reason, log.path, tail, { cause: error });
  } finally {
    await log.close();
  }
}

function urlOf(host: string, port: number): string {
  return `nats://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The delay before a restart, by the number of restarts in a row. */
const RESTARTS: BackOff = { firstMs: 100, maxMs: 3_200 };
/** A server that has run for so long is healthy: its restarts count from 0 again. */
const HEALTHY_AFTER_MS = 60_000;

/** What became of restarts: how many are used, and why the last one failed, if it did. */
interface Restarted {
  readonly isUp: boolean;
  readonly restarts: number;
  readonly failure?: string | undefined;
}

/**
 * The server of one state directory, over the restarts of its process. The directory stays claimed meanwhile, and the
 * connection file names this process while no server runs, so that others wait for the restart.
 */
class SupervisedServer implements RunningServer {
  readonly url: string;
  readonly token: string;
  readonly port: number;
  readonly version: string;
  readonly logFile: string;
  readonly exited: Promise<ServerExit>;
  readonly #settings: Settings;
  readonly #claim: StateDirClaim;
  readonly #stopped = new AbortController();
  #launched: Launched;
  #stopping: Promise<void> | undefined;

  constructor(settings: Settings, version: string, claim: StateDirClaim, launched: Launched) {
    this.#settings = { ...settings, port: launched.port };
    this.#claim = claim;
    this.#launched = launched;
    this.port = launched.port;
    this.url = urlOf(settings.host, launched.port);
    this.token = settings.token;
    this.version = version;
    this.logFile = launched.logFile;
    this.exited = this.#supervise();
  }

  get pid(): number {
    return this.#launched.process.pid;
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#stopped.abort();
    await endServer(this.#launched.process, this.#settings.stopTimeoutMs);
    await this.exited;
  }

  async #supervise(): Promise<ServerExit> {
    let restarts = 0;
    for (;;) {
      const startedMs = performance.now();
      const { code, signal } = await this.#launched.process.exited;
      const { signal: stopped } = this.#stopped;
      if (performance.now() - startedMs >= HEALTHY_AFTER_MS) restarts = 0;
      const logTail = stopped.aborted ? '' : await this.#launched.tail();
      const tried = await this.#restart(restarts);
      restarts = tried.restarts;
      if (!tried.isUp) {
        await removeConnection(this.#settings.stateDir);
        await this.#claim.release();
        const expected = stopped.aborted;
        return { expected, code, signal, restarts, logTail: expected ? '' : (tried.failure ?? logTail) };
      }
      this.#settings.onRestart?.({ expected: false, code, signal, restarts, logTail });
    }
  }

  /** Restarts the process until it is up, is not wanted any longer, or all restarts are used. */
  async #restart(used: number): Promise<Restarted> {
    const { restartsMax, stateDir, token, stopTimeoutMs } = this.#settings;
    const { signal } = this.#stopped;
    let restarts = used;
    let failure: string | undefined;
    while (restarts < restartsMax && !signal.aborted) {
      const own = await markProcess(process.pid);
      if (own) await writeConnection(stateDir, own, { url: this.url, token });
      await sleep(delayAfter(restarts + 1, RESTARTS), undefined, { signal }).catch(() => undefined);
      if (signal.aborted) break;
      restarts += 1;
      try {
        this.#launched = await launch(this.#settings, this.#claim);
      } catch (error) {
        // One that could not be ended still uses the directory. Any other failure counts as a restart.
        if (error instanceof NatsServerStopFailedError) throw error;
        failure = (error as Error).message;
        continue;
      }
      // Stopped while it came up: the process that `stop` ended was the one before.
      if (signal.aborted) await endServer(this.#launched.process, stopTimeoutMs);
      return { isUp: !signal.aborted, restarts };
    }
    return { isUp: false, restarts, failure };
  }
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
