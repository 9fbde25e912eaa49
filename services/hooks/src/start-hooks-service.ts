/** The hook service: a module of handlers served on the bus, loaded again when one of its files changes. */

import { basename, extname, resolve } from 'node:path';
import { type LoadedHooks, loadHooks } from '@coxswain/adapter-hooks';
import { createServiceLog, type LogTarget, secretMask } from '@coxswain/adapter-log';
import {
  connectionTo,
  connectNats,
  endOnce,
  logConnection,
  lostForGood,
  type NamedBus,
  serveHooks,
} from '@coxswain/adapter-nats';
import { type MetricsAddress, startWorkerTelemetry } from '@coxswain/adapter-telemetry';
import { watchLeftBehind } from '@coxswain/handlers/load';
import { DEFAULT_TENANT } from '@coxswain/protocol';
import { watchFiles } from './watch-files.ts';

/** What the service is started with. */
export interface HooksServiceOptions {
  /** The module of handlers, TypeScript or JavaScript, or a manifest in YAML. */
  readonly file: string;
  readonly nats: NamedBus;
  /** The service's name, by default the file's. Instances of one name share the work. */
  readonly name?: string | undefined;
  /** By default the one of the key that lets the service in, else `default`. */
  readonly tenant?: string | undefined;
  /** Where the log file lies. */
  readonly stateDir: string;
  /** Default `stdout`. */
  readonly log?: LogTarget | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Where its meters are served; without it, where `COX_METRICS_PORT` says. Null: nowhere. */
  readonly metrics?: MetricsAddress | null | undefined;
}

/** A service that runs. */
export interface HooksService {
  readonly name: string;
  readonly instance: string;
  /** Where its meters are served; null where they are not. */
  readonly metricsUrl: string | null;
  /** Registrations at the moment. */
  readonly count: number;
  /** Resolves where the bus lets the service in no more. Stop it then. */
  readonly failed: Promise<Error>;
  /** Contract: rejects, with why, while the bus does not answer. */
  ping(): Promise<void>;
  /** Answers what it was asked, and ends. Its registrations stay. */
  stop(): Promise<void>;
}

/**
 * Loads the handlers and serves them.
 * @throws HookModuleError, ManifestError, and what the bus throws where it cannot be reached or is not fit.
 */
export async function startHooksService(options: HooksServiceOptions): Promise<HooksService> {
  const file = resolve(options.file);
  const name = options.name ?? nameOf(file);
  const bus = connectionTo(options.nats);
  const env = options.env ?? process.env;
  const secrets = [bus.token, bus.password, bus.seed];
  const log = createServiceLog('hooks', options.log ?? 'stdout', options.stateDir, env, secrets);
  const endWatching = watchLeftBehind(log);
  const masked = secretMask(env, secrets);
  const telemetry = await startWorkerTelemetry({ service: 'hooks', env, log, masked, metrics: options.metrics });
  let connected: Awaited<ReturnType<typeof connectNats>> | undefined;
  try {
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
    const watch = watchFiles(loaded.files, log, async () => {
      const next = await loadHooks(file, name);
      await served.update(next.hooks);
      loaded = next;
      log.info({ service: name, hooks: told(next) }, 'hooks reloaded');
      return next.files;
    });
    log.info({ service: name, instance: served.instance, file, hooks: told(loaded) }, 'hook service is up');
    const stop = endOnce(async () => {
      log.info({ service: name, instance: served.instance }, 'hook service stops');
      await watch.end();
      await served.stop();
      await nc.close();
      await telemetry.close();
      endWatching();
    });
    return {
      name,
      instance: served.instance,
      metricsUrl: telemetry.metricsUrl,
      get count() {
        return loaded.hooks.table().length;
      },
      failed: lostForGood(nc),
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
