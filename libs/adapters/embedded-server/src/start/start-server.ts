import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeFolder, markProcess, StateDirUnusableError, systemTrouble } from '@coxswain/ports/discovery';
import { type BackOff, delayAfter } from '@coxswain/protocol';
import {
  NatsServerStartFailedError,
  NatsServerStopFailedError,
  PortInUseError,
  ServerOptionInvalidError,
  type StateDirHolder,
} from '../server-errors.ts';
import { requireServerVersion } from '../server-version.ts';
import { removeConnection, writeConnection } from './connection-file.ts';
import { serverConfig } from './server-config.ts';
import { openServerLog } from './server-log.ts';
import { endServer, type ServerProcess, spawnServer } from './server-process.ts';
import { waitUntilReady } from './server-readiness.ts';
import { claimStateDir, type StateDirClaim } from './state-dir-claim.ts';

/** The server to start, its state directory and its settings. */
export interface StartServerOptions {
  /** Path of a nats-server, for example from `findServer`. */
  readonly binary: string;
  /**
   * Folder for the store, configuration, log and `connection.json`. Created if missing. One server at a time may use
   * it.
   */
  readonly stateDir: string;
  /** Default: a free port. */
  readonly port?: number | undefined;
  /** A loopback address or `localhost`. Default `127.0.0.1`. */
  readonly host?: string | undefined;
  /** At least 16 letters, digits, `-` and `_`. Default: 256 random bits. */
  readonly token?: string | undefined;
  /**
   * Whether each write is synced to disk before it is acknowledged. An append then takes 2 to 3 times as long. Default
   * true.
   */
  readonly syncAlways?: boolean | undefined;
  /** Start timeout, in milliseconds: a large store takes time to load. Default 60,000. */
  readonly startTimeoutMs?: number | undefined;
  /** Description of this process, for processes that find the state directory in use. */
  readonly holder?: StateDirHolder | undefined;
  /** How long a server may take to stop before it is killed, in milliseconds. Default 10,000. */
  readonly stopTimeoutMs?: number | undefined;
  /**
   * Maximum consecutive restarts of a server that ends unexpectedly, on the same port and with the same token. After a
   * minute of running, the count starts from 0. Default 0.
   */
  readonly restartsMax?: number | undefined;
  /**
   * Called after each successful restart, with the exit of the previous process. `restarts` includes this one. Must not
   * throw.
   */
  readonly onRestart?: ((end: ServerExit) => void) | undefined;
}

/** A running server. It ends with this process, even if this process is killed. */
export interface RunningServer {
  /** Without credentials: `nats://127.0.0.1:4222`. */
  readonly url: string;
  readonly token: string;
  readonly port: number;
  /** Process id of the nats-server. It changes with a restart. */
  readonly pid: number;
  /** For example `2.15.1`. */
  readonly version: string;
  readonly logFile: string;
  /**
   * Stops the server and releases its state directory. All calls return the same promise.
   *
   * @throws NatsServerStopFailedError if the server still runs after SIGKILL; otherwise as {@link exited}.
   */
  stop(): Promise<void>;
  /**
   * Resolves when the server has ended, expectedly or not, is not restarted, and its state directory is released.
   * Rejects if that directory can no longer be read or written, or a restarted process cannot be ended.
   */
  readonly exited: Promise<ServerExit>;
}

/** How a server ended. */
export interface ServerExit {
  /** Whether it ended because of `stop()`. */
  readonly expected: boolean;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Number of consecutive restarts, including failed ones. */
  readonly restarts: number;
  /** After an unexpected end: the tail of its log, or the reason why the last restart failed. Otherwise empty. */
  readonly logTail: string;
}

/**
 * Starts a nats-server with JetStream on a loopback address, and waits until it accepts a client.
 *
 * @throws NatsServerUnusableError, NatsServerTooOldError for an unusable binary.
 * @throws ServerOptionInvalidError for a host that is not loopback, an invalid token, or an invalid port.
 * @throws StateDirUnusableError if the path cannot be created or written, or is not a folder.
 * @throws StateDirInUseError naming the process that holds the state directory; PortInUseError.
 * @throws NatsServerStartFailedError quoting the log, if the server ends, or is not ready within the timeout.
 * @throws NatsServerStopFailedError if a server that failed to start cannot be ended.
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
    // A killed process may have left the file. It would now describe another server.
    await removeConnection(settings.stateDir);
    return new SupervisedServer(settings, version, claim, await launch(settings, claim));
  } catch (error) {
    // A server that cannot be ended still uses the directory, so keep the claim.
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
    // A server that listens on a name listens on all addresses of the name.
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

/** A server process that accepts clients. */
interface Launched {
  readonly process: ServerProcess;
  readonly port: number;
  readonly logFile: string;
  /** Reads the tail of its log. */
  readonly tail: () => Promise<string>;
}

/** Starts one server process in a claimed directory, waits until it is ready, and writes the connection file. */
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
/** A server that has run for this time is healthy, and its count of restarts starts from 0. Milliseconds. */
const HEALTHY_AFTER_MS = 60_000;

/** The result of restarts: the number of used restarts, and the reason of the last failed one. */
interface Restarted {
  readonly isUp: boolean;
  readonly restarts: number;
  readonly failure?: string | undefined;
}

/**
 * The server of one state directory, across restarts of its process. The directory stays claimed during a restart. The
 * connection file then contains this process instead of the server, so that clients wait for the restart.
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

  /** Restarts the process until it is ready, `stop` was called, or all restarts are used. */
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
        // A process that cannot be ended still uses the directory. Any other failure counts as a restart.
        if (error instanceof NatsServerStopFailedError) throw error;
        failure = (error as Error).message;
        continue;
      }
      // If `stop` was called during the restart, it ended the previous process: end this one, too.
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
  // Remove the file first: the mode applies only to a new file, and this one contains the token.
  await rm(path, { force: true });
  await writeFile(path, serverConfig({ host, port: port || -1, token, stateDir, syncAlways, logFile, portsDir }), {
    mode: 0o600,
  });
  return path;
}
