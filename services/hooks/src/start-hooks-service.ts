/** The hook service: serves a module of handlers on the bus, and reloads it when one of its files changes. */

import { basename, extname, resolve } from 'node:path';
import { type LoadedHooks, loadHooks } from '@coxswain/adapter-hooks';
import { createServiceLog, type LogTarget, secretMask } from '@coxswain/adapter-log';
import {
  awaitPermanentClose,
  connectionTo,
  connectNats,
  endOnce,
  logConnection,
  type NamedBus,
  serveHooks,
} from '@coxswain/adapter-nats';
import { type MetricsAddress, startWorkerTelemetry } from '@coxswain/adapter-telemetry';
import { watchUnhandledFailures } from '@coxswain/handlers/load';
import { DEFAULT_TENANT } from '@coxswain/protocol';
import { watchFiles } from './watch-files.ts';

/** Options of the hook service. */
export interface HooksServiceOptions {
  /** The module of handlers, TypeScript or JavaScript, or a manifest in YAML. */
  readonly file: string;
  readonly nats: NamedBus;
  /** The service's name. Default: the name of the file. Instances with the same name share the work. */
  readonly name?: string | undefined;
  /** Default: the tenant of the key, otherwise `default`. */
  readonly tenant?: string | undefined;
  /** Folder of the log file. */
  readonly stateDir: string;
  /** Default `stdout`. */
  readonly log?: LogTarget | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Address of the metrics endpoint. Default: `COX_METRICS_PORT`. Null: no endpoint. */
  readonly metrics?: MetricsAddress | null | undefined;
}

/** A running hook service. */
export interface HooksService {
  readonly name: string;
  readonly instance: string;
  /** URL of the metrics endpoint; null without one. */
  readonly metricsUrl: string | null;
  /** Current number of registrations. */
  readonly count: number;
  /**
   * Resolves with the error when the NATS connection has ended permanently, for example after its key was revoked. The
   * caller then stops the service.
   */
  readonly failed: Promise<Error>;
  /** Contract: rejects with the reason while NATS does not respond. */
  ping(): Promise<void>;
  /** Answers in-flight questions and stops. Its registrations stay. */
  stop(): Promise<void>;
}

/**
 * Loads the handlers and serves them.
 * @throws HookModuleError, ManifestError; errors of connecting to NATS, or of a bus that is not prepared.
 */
export async function startHooksService(options: HooksServiceOptions): Promise<HooksService> {
  const file = resolve(options.file);
  const name = options.name ?? nameOf(file);
  const bus = connectionTo(options.nats);
  const env = options.env ?? process.env;
  const secrets = [bus.token, bus.password, bus.seed];
  const log = createServiceLog('hooks', options.log ?? 'stdout', options.stateDir, env, secrets);
  const endWatching = watchUnhandledFailures(log);
  const masked = secretMask(env, secrets);
  const telemetry = await startWorkerTelemetry({ service: 'hooks', env, log, masked, metrics: options.metrics });
  let connected: Awaited<ReturnType<typeof connectNats>> | undefined;
  try {
    const loadedAtMs = Date.now();
    let loaded = await loadHooks(file, name);
    const nc = await connectNats({ ...bus, name: `cox-hooks-${name}` });
    logConnection(nc, log);
    connected = nc;
    const tenant = options.tenant ?? options.nats.credentials?.tenant ?? DEFAULT_TENANT;
    const served = await serveHooks(nc, log, {
      tenant,
      service: name,
      handlers: loaded.hooks,
      observer: telemetry.observer,
    });
    const watch = watchFiles(loaded.files, loadedAtMs, log, async () => {
      const next = await loadHooks(file, name);
      await served.update(next.hooks);
      loaded = next;
      log.info({ service: name, hooks: told(next) }, 'hooks reloaded');
      return next.files;
    });
    log.info({ service: name, instance: served.instance, file, hooks: told(loaded) }, 'hook service is up');
    const stop = endOnce(
      () => log.info({ service: name, instance: served.instance }, 'hook service stops'),
      () => watch.end(),
      () => served.stop(),
      () => nc.close(),
      () => telemetry.close(),
      endWatching,
    );
    return {
      name,
      instance: served.instance,
      metricsUrl: telemetry.metricsUrl,
      get count() {
        return loaded.hooks.table().length;
      },
      failed: awaitPermanentClose(nc),
      ping: async () => void (await nc.rtt()),
      stop,
    };
  } catch (error) {
    await connected?.close();
    await telemetry.close();
    endWatching();
    throw error;
  }
}

function nameOf(file: string): string {
  return (
    basename(file, extname(file))
      .replaceAll(/[^A-Za-z0-9_-]/g, '-')
      .slice(0, 32) || 'hooks'
  );
}

function told({ hooks }: LoadedHooks): string[] {
  return hooks.table().map(({ id, point }) => `${id} at ${point}`);
}
