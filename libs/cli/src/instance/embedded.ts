/** An embedded instance: nats-server as a child process, and the services in this process. */

import {
  findServer,
  type RunningServer,
  reportTo,
  type ServerExit,
  type ServerSource,
  type StartServerOptions,
  type StateDirHolder,
  startServer,
} from '@coxswain/adapter-embedded-server';
import type { LogTarget } from '@coxswain/adapter-log';
import { endOnce } from '@coxswain/adapter-nats';
import type { MetricsAddress, SpansLost } from '@coxswain/adapter-telemetry';
import type { HeardOnBus, SessionsServiceOptions } from '@coxswain/sessions';
import { answersFolder, type ChosenManifest } from '../folders/mod.ts';
import { keepAccess, readKeptAccess, startOnPort } from './kept-access.ts';

/** An instance that ends with this process. */
export interface EmbeddedInstance {
  readonly server: RunningServer;
  /** Where the server's binary was found. */
  readonly source: ServerSource;
  readonly stateDir: string;
  /** The address of the services' metrics; null if they are not served. */
  readonly metricsUrl: string | null;
  /** Resolves with the reason when the services fail permanently. */
  readonly failed: Promise<Error>;
  /** Contract: rejects with the reason while the services cannot do their work. */
  ping(): Promise<void>;
  /** The announcements that the session host has received; absent without a session host. */
  readonly heard?: HeardOnBus | undefined;
  /** A notice that is no reason for a restart. */
  readonly remark?: (() => string | null) | undefined;
  /** Stops the services, then the server. Calls after the first wait for the same stop. */
  stop(): Promise<void>;
}

/** Options of an embedded instance. */
export interface EmbeddedOptions {
  readonly stateDir: string;
  readonly port?: number | undefined;
  /**
   * Whether a session host runs in this process. Without one, sessions can be read, and commands are stored for later.
   */
  readonly services: boolean;
  readonly env: NodeJS.ProcessEnv;
  /** The description of this process for other processes that find the state directory in use. */
  readonly holder: StateDirHolder;
  /** The manifest of the session host, if there is one. */
  readonly manifest?: ChosenManifest | undefined;
  /** The policy file of the session host, if there is one. */
  readonly policy?: string | undefined;
  /** The log of the services. Default: one file per service in the state directory. */
  readonly log?: LogTarget | undefined;
  /** The address for metrics. Default: none, because COX_METRICS_PORT is meant for long-running services. */
  readonly metrics?: MetricsAddress | null | undefined;
  /** The parts of the session host that an embedding program provides. */
  readonly host?:
    | Pick<
        SessionsServiceOptions,
        'tools' | 'hooks' | 'models' | 'defaultModel' | 'defaultRoot' | 'policy' | 'stopPredicates'
      >
    | undefined;
  /** Called after each restart of a server that ended unexpectedly. Must not throw. */
  readonly onRestart?: ((end: ServerExit) => void) | undefined;
}

/** Maximum number of restarts in a row, with pauses of 0.1 s to 3.2 s between them. */
const SERVER_RESTARTS_MAX = 6;

/** The longest wait for a span collector at the end of a command, in ms. */
const SPANS_TIMEOUT_MS = 1_000;

/**
 * Starts a server on a state directory and, if requested, the services. If the services fail to start, the server is
 * stopped.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedInstance> {
  const { stateDir, port, services, env, holder } = options;
  // NATS_URL names another bus, which the caller has decided not to use.
  const { NATS_URL: _other, ...own } = env;
  const found = await findServer({ env: own, report: reportTo(process.stderr) });
  if (found.kind !== 'binary') throw new Error('no binary although NATS_URL is not set');
  const { source } = found;
  const { onRestart } = options;
  const server = await startOnKeptPort(
    { binary: found.path, stateDir, holder, restartsMax: SERVER_RESTARTS_MAX, onRestart },
    port,
  );
  if (!services) {
    return {
      server,
      source,
      stateDir,
      metricsUrl: null,
      failed: new Promise(() => undefined),
      ping: async () => {},
      stop: () => server.stop(),
    };
  }
  try {
    const { startRetentionService, startSessionsService } = await import('@coxswain/sessions');
    const service = await startSessionsService({
      ...options.host,
      nats: { servers: server.url, token: server.token },
      stateDir,
      manifest: options.manifest?.path,
      manifestDigest: options.manifest?.digest,
      policyFile: options.policy,
      // This process owns the server, so its token may configure the host.
      trustsBus: true,
      ownPaths: [answersFolder(env)],
      log: options.log ?? 'file',
      metrics: options.metrics ?? null,
      // A long-running instance reports lost spans in its log.
      ...(holder.passing ? { spansWithinMs: SPANS_TIMEOUT_MS, spansLost: tellSpansLost } : {}),
    });
    // A command that ends with its run leaves the purging to the next cox up.
    const retention = holder.passing
      ? null
      : await startRetentionService({
          nats: { servers: server.url, token: server.token },
          stateDir,
          log: options.log ?? 'file',
        }).catch(async (error: unknown) => {
          await service.stop();
          throw error;
        });
    const stop = endOnce(
      () => service.stop(),
      () => retention?.stop(),
      () => server.stop(),
    );
    const { metricsUrl, failed, ping, remark, registered } = service;
    return { server, source, stateDir, metricsUrl, failed, ping, remark, heard: registered, stop };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/**
 * Starts the server with its last token and, unless a port is given, on its last port. Stores both. A port that another
 * program uses meanwhile is replaced with a new one.
 */
async function startOnKeptPort(options: StartServerOptions, port: number | undefined): Promise<RunningServer> {
  const { stateDir } = options;
  const say = (text: string) => void process.stderr.write(text);
  const kept = await readKeptAccess(stateDir, say);
  const { nats } = kept;
  const onTaken = (taken: number) =>
    say(
      `port ${taken}, the last port of NATS, is in use by another program: NATS uses a new port. ` +
        'Shells with an older NATS_URL need: eval "$(cox env)"; --port chooses a port\n',
    );
  const server = await startOnPort({ given: port, last: nats?.port, onTaken }, (tried) =>
    startServer({ ...options, token: nats?.token, port: tried }),
  );
  await keepAccess(stateDir, kept, { nats: { token: server.token, port: server.port } });
  return server;
}

function tellSpansLost({ count, why }: SpansLost): void {
  process.stderr.write(`${count} ${count === 1 ? 'span was' : 'spans were'} dropped: ${why}\n`);
}
