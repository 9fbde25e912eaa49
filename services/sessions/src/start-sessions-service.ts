/** The sessions service: a session host wired to NATS, models, MCP servers and the built-in tools. Wiring only. */
import { resolve } from 'node:path';
import { createMcpTools } from '@coxswain/adapter-mcp';
import { createIds, createSystemClock } from '@coxswain/adapter-memory';
import { createModels, KNOWN_PRICES, readPrices } from '@coxswain/adapter-models';
import {
  connectNats,
  createNatsBlobs,
  createNatsInbox,
  createNatsJournal,
  createNatsPublisher,
  createNatsSnapshots,
  createNatsTimers,
  ensureStreams,
  parseConnectionUrl,
  serveQueries,
} from '@coxswain/adapter-nats';
import { combineToolSources, createBuiltInTools } from '@coxswain/adapter-tools';
import type { Hooks, Personas, StopPredicates } from '@coxswain/ports';
import type { PriceTable } from '@coxswain/protocol';
import { createSessionHost } from '@coxswain/session';
import { createServiceLog, type LogTarget } from './service-log.ts';

/** What the service is started with. */
export interface SessionsServiceOptions {
  /** `servers` may carry credentials: `nats://token@host:port`. */
  readonly nats: { readonly servers: string; readonly token?: string | undefined };
  /** Where the log file lies. */
  readonly stateDir: string;
  /** A name for people. */
  readonly hostName?: string | undefined;
  /** Default `file`. */
  readonly log?: LogTarget | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** The root of sessions that name none, and where relative paths of scripts begin; the working directory by default. */
  readonly defaultRoot?: string | undefined;
  /** What models cost, before the rows of the file that COX_PRICES names and of the built-in table. */
  readonly prices?: PriceTable | undefined;
  /** Stop conditions in code, for personas that name them in stop_when. */
  readonly stopPredicates?: StopPredicates | undefined;
}

/** A service that runs. */
export interface SessionsService {
  /** This host's incarnation. */
  readonly hostId: string;
  /** Sessions that were taken up at the start. */
  readonly recovered: number;
  /** Stops in order; calls under way may end first, within a bound. */
  stop(): Promise<void>;
}

/**
 * Starts a session host on a bus and resolves when it serves.
 * @throws what the adapters throw where the bus cannot be reached or is not fit.
 */
export async function startSessionsService(options: SessionsServiceOptions): Promise<SessionsService> {
  const env = options.env ?? process.env;
  const ownPrices = env.COX_PRICES ? await readPrices(resolve(options.defaultRoot ?? '.', env.COX_PRICES)) : [];
  const { servers, ...credentials } = parseConnectionUrl(options.nats.servers);
  const token = options.nats.token ?? credentials.token;
  const log = createServiceLog(options.log ?? 'file', options.stateDir, env, [token, credentials.password]);
  const nc = await connectNats({ servers, ...credentials, token, name: 'cox-sessions' });
  try {
    await ensureStreams(nc);
    const clock = createSystemClock();
    const ids = createIds(clock);
    const defaultRoot = options.defaultRoot ?? process.cwd();
    const host = createSessionHost(
      {
        journal: await createNatsJournal(nc),
        inbox: await createNatsInbox(nc, log),
        snapshots: createNatsSnapshots(nc),
        timers: createNatsTimers(nc),
        blobs: createNatsBlobs(nc),
        publisher: createNatsPublisher(nc, log),
        models: createModels({ env, clock, baseFolder: defaultRoot }),
        tools: combineToolSources([createBuiltInTools(), createMcpTools({ env })]),
        personas: noPersonas,
        hooks: noHooks,
        clock,
        ids,
        log,
        defaultRoot,
        defaultModel: env.COX_MODEL || undefined,
        stopPredicates: options.stopPredicates,
        prices: [...(options.prices ?? []), ...ownPrices, ...KNOWN_PRICES],
      },
      { name: options.hostName ?? 'host' },
    );
    const { recovered } = await host.start();
    const stopQueries = serveQueries(nc, log, (ref) => host.status(ref));
    log.info({ host: host.id, recovered }, 'session host is up');
    let stopping: Promise<void> | undefined;
    const stop = async () => {
      log.info({ host: host.id }, 'session host stops');
      stopQueries();
      await host.stop();
      await nc.close();
    };
    return {
      hostId: host.id,
      recovered,
      stop: () => {
        stopping ??= stop();
        return stopping;
      },
    };
  } catch (error) {
    await nc.close();
    throw error;
  }
}

// Personas by name and hooks come with services of their own; until then a start brings its persona's definition.
const noPersonas: Personas = { find: async () => null, names: async () => [] };
const noHooks: Hooks = {
  table: () => [],
  ask: async () => ({ status: 'failed', code: 'hook_unavailable', message: 'no hook service runs' }),
};
