/** The hook service: a module of handlers served on the bus, loaded again when one of its files changes. */
import { unwatchFile, watchFile } from 'node:fs';
import { basename, extname, resolve } from 'node:path';
import { type LoadedHooks, loadHooks } from '@coxswain/adapter-hooks';
import { createServiceLog, type LogTarget } from '@coxswain/adapter-log';
import { connectNats, endOnce, parseConnectionUrl, serveHooks } from '@coxswain/adapter-nats';
import type { Log } from '@coxswain/ports';
import { DEFAULT_TENANT } from '@coxswain/protocol';

/** What the service is started with. */
export interface HooksServiceOptions {
  /** The module of handlers, TypeScript or JavaScript, or a manifest in YAML. */
  readonly file: string;
  /** `servers` may carry credentials: `nats://token@host:port`. */
  readonly nats: { readonly servers: string; readonly token?: string | undefined };
  /** The service's name, by default the file's. Instances of one name share the work. */
  readonly name?: string | undefined;
  /** Default `default`. */
  readonly tenant?: string | undefined;
  /** Where the log file lies. */
  readonly stateDir: string;
  /** Default `stdout`. */
  readonly log?: LogTarget | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
}

/** A service that runs. */
export interface HooksService {
  readonly name: string;
  readonly instance: string;
  /** Registrations at the moment. */
  readonly count: number;
  /** Answers what it was asked, and ends. Its registrations stay. */
  stop(): Promise<void>;
}

const LOOKED_EVERY_MS = 250;
/** A version that cannot be loaded may lack a file that nobody watches yet. */
const BROKEN_TRIED_EVERY_MS = 2_000;

/**
 * Loads the handlers and serves them.
 * @throws HookModuleError, ManifestError, and what the bus throws where it cannot be reached or is not fit.
 */
export async function startHooksService(options: HooksServiceOptions): Promise<HooksService> {
  const file = resolve(options.file);
  const name = options.name ?? nameOf(file);
  const { servers, ...credentials } = parseConnectionUrl(options.nats.servers);
  const token = options.nats.token ?? credentials.token;
  const env = options.env ?? process.env;
  const log = createServiceLog('hooks', options.log ?? 'stdout', options.stateDir, env, [token, credentials.password]);
  let loaded = await loadHooks(file, name);
  const nc = await connectNats({ servers, ...credentials, token, name: `cox-hooks-${name}` });
  try {
    const tenant = options.tenant ?? DEFAULT_TENANT;
    const served = await serveHooks(nc, log, { tenant, service: name, handlers: loaded.hooks });
    const watch = watchFiles(loaded.files, log, async () => {
      const next = await loadHooks(file, name);
      await served.update(next.hooks);
      loaded = next;
      log.info({ service: name, hooks: told(next) }, 'the hooks were loaded again');
      return next.files;
    });
    log.info({ service: name, instance: served.instance, file, hooks: told(loaded) }, 'hook service is up');
    const stop = endOnce(async () => {
      log.info({ service: name, instance: served.instance }, 'hook service stops');
      await watch.end();
      await served.stop();
      await nc.close();
    });
    return {
      name,
      instance: served.instance,
      get count() {
        return loaded.hooks.table().length;
      },
      stop,
    };
  } catch (error) {
    await nc.close();
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

/** Calls `reload` when a file has changed, one call after another; it says which files to look at from then on. */
function watchFiles(
  first: readonly string[],
  log: Log,
  reload: () => Promise<readonly string[]>,
): { end(): Promise<void> } {
  let files = first;
  let running: Promise<void> | null = null;
  let again = false;
  let ended = false;
  let retry: NodeJS.Timeout | undefined;
  let lastProblem = '';

  const look = () => {
    for (const file of files) watchFile(file, { interval: LOOKED_EVERY_MS, persistent: false }, changed);
  };
  const lookAway = () => {
    for (const file of files) unwatchFile(file, changed);
  };
  function changed(): void {
    if (ended) return;
    again = true;
    running ??= work().finally(() => {
      running = null;
    });
  }
  async function work(): Promise<void> {
    while (again && !ended) {
      again = false;
      clearTimeout(retry);
      try {
        const next = await reload();
        lastProblem = '';
        lookAway();
        files = next;
        if (!ended) look();
      } catch (error) {
        const problem = (error as Error).message;
        if (problem !== lastProblem) log.error({ error }, 'the new version was not taken; the one before goes on');
        lastProblem = problem;
        retry = setTimeout(changed, BROKEN_TRIED_EVERY_MS);
        retry.unref();
      }
    }
  }
  look();
  return {
    async end() {
      ended = true;
      clearTimeout(retry);
      lookAway();
      await running;
    },
  };
}
