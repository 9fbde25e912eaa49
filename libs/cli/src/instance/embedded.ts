/** The embedded default: a nats-server as a child process, and the services inside this one. */

import type { LogTarget } from '@coxswain/adapter-log';
import {
  endOnce,
  findServer,
  type RunningServer,
  reportTo,
  type ServerExit,
  type ServerSource,
  type StartServerOptions,
  type StateDirHolder,
  startServer,
} from '@coxswain/adapter-nats';
import type { MetricsAddress, SpansLost } from '@coxswain/adapter-telemetry';
import type { HeardOnBus, SessionsServiceOptions } from '@coxswain/sessions';
import { answersFolder } from './folder-trust.ts';
import { keepAccess, readKeptAccess, startOnPort } from './kept-access.ts';
import type { ChosenManifest } from './manifest.ts';

/** An instance that ends with this process. */
export interface EmbeddedInstance {
  readonly server: RunningServer;
  /** Where the server's binary was found. */
  readonly source: ServerSource;
  readonly stateDir: string;
  /** Where the services' meters are served; null where they are not. */
  readonly metricsUrl: string | null;
  /** Resolves where the services can do no more, with why. */
  readonly failed: Promise<Error>;
  /** Contract: rejects, with why, while the services cannot do their work. */
  ping(): Promise<void>;
  /** What its session host has heard of; absent without one. */
  readonly heard?: HeardOnBus | undefined;
  /** Something to know that is no reason to restart it. */
  readonly remark?: (() => string | null) | undefined;
  /** Stops the services, then the server. Calls after the first wait for the same stop. */
  stop(): Promise<void>;
}

/** What is started. */
export interface EmbeddedOptions {
  readonly stateDir: string;
  readonly port?: number | undefined;
  /** Whether session hosts run in this process; without them sessions can be read, and commands stored for later. */
  readonly services: boolean;
  readonly env: NodeJS.ProcessEnv;
  /** Who starts it, for those who find the state folder taken. */
  readonly holder: StateDirHolder;
  /** The manifest of the session hosts, if there is one. */
  readonly manifest?: ChosenManifest | undefined;
  /** The file of their policy, if there is one. */
  readonly policy?: string | undefined;
  /** Where the services log; a file of each in the state folder by default. */
  readonly log?: LogTarget | undefined;
  /** Where the services' meters are served; nowhere by default: what the environment names is for those that stay. */
  readonly metrics?: MetricsAddress | null | undefined;
  /** What a program that embeds the session host gives it. */
  readonly host?:
    | Pick<
        SessionsServiceOptions,
        'tools' | 'hooks' | 'models' | 'defaultModel' | 'defaultRoot' | 'policy' | 'stopPredicates'
      >
    | undefined;
  /** Called after each restart of a server that ended by itself. Must not throw. */
  readonly onRestart?: ((end: ServerExit) => void) | undefined;
}

/** Restarts in a row, with pauses of 0.1 s to 3.2 s between them. */
const SERVER_RESTARTS_MAX = 6;

/** Whoever waits for the end of a command does not wait longer than this for a collector of spans. */
const SPANS_WITHIN_MS = 1_000;

/** Starts a server on a state folder and, if asked for, the services. */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedInstance> {
  const { stateDir, port, services, env, holder } = options;
  // NATS_URL names another bus, which was found not to be meant.
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
      // The server is this process's own: its token may configure the host.
      trustsBus: true,
      ownPaths: [answersFolder(env)],
      log: options.log ?? 'file',
      metrics: options.metrics ?? null,
      // What stays says it in its log, which somebody reads.
      ...(holder.passing ? { spansWithinMs: SPANS_WITHIN_MS, spansLost: tellSpansLost } : {}),
    });
    // A command that ends with its run leaves what is deleted to the next cox up.
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
    const stop = endOnce(async () => {
      try {
        await service.stop();
        await retention?.stop();
      } finally {
        await server.stop();
      }
    });
    const { metricsUrl, failed, ping, remark, heard } = service;
    return { server, source, stateDir, metricsUrl, failed, ping, remark, heard, stop };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/**
 * Starts the server with the token and, unless a port is given, on the port of its last start, and keeps both. A port
 * that another program has taken meanwhile is replaced by a new one.
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
