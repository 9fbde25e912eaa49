/** The sessions service: connects a session host to NATS, models, MCP servers and the built-in tools. */

import { resolve } from 'node:path';
import { combineHooks, loadManifest } from '@coxswain/adapter-hooks';
import { createServiceLog, type LogTarget, secretMask } from '@coxswain/adapter-log';
import { createMcpTools } from '@coxswain/adapter-mcp';
import { createIds, createSystemClock, StoreClock } from '@coxswain/adapter-memory';
import { createModels, KNOWN_PRICES, type OwnModels, ownOrigins, readPrices } from '@coxswain/adapter-models';
import {
  awaitPermanentClose,
  checkReplicas,
  checkStoreQuorum,
  connectionTo,
  connectNats,
  createNatsActiveSessions,
  createNatsBlobs,
  createNatsHooks,
  createNatsHostChannel,
  createNatsInbox,
  createNatsJournal,
  createNatsPersonas,
  createNatsPublisher,
  createNatsRememberedRules,
  createNatsRetention,
  createNatsSender,
  createNatsSessionIndex,
  createNatsSnapshots,
  createNatsTenantUsage,
  createNatsTimers,
  createNatsTools,
  endOnce,
  ensureStreams,
  listHosts,
  logConnection,
  type NamedBus,
  publishApprovalNotice,
  retryWhileUnavailable,
  serveLargeFields,
  serveQueries,
  serveTenantKeys,
  streamFill,
  timersTimeMs,
} from '@coxswain/adapter-nats';
import {
  type MetricsAddress,
  type SpansLost,
  startTelemetry,
  type TelemetryOptions,
} from '@coxswain/adapter-telemetry';
import {
  combineToolSources,
  createBuiltInTools,
  createCodeTools,
  createCrewTools,
  createPublicFetch,
} from '@coxswain/adapter-tools';
import { watchUnhandledFailures } from '@coxswain/handlers/load';
import type { Hooks, HostChannel, Personas, ServedPersonas, StopPredicates, ToolSource } from '@coxswain/ports';
import {
  type HookTable,
  HostName,
  type HostPolicyInput,
  type PriceTable,
  readId,
  type TenantId,
} from '@coxswain/protocol';
import { createSessionHost } from '@coxswain/session';
import { createApprovalNotices, publishesNotices, webhookFrom } from './approval-notices.ts';
import { hostRules } from './load-policy.ts';
import { watchReplicas } from './watch-replicas.ts';
import { watchStreamFill } from './watch-stream-fill.ts';

/** Options of the sessions service. */
export interface SessionsServiceOptions {
  readonly nats: NamedBus;
  /** Folder of the log file. */
  readonly stateDir: string;
  /** The host's name for people: 1 to 64 characters of A-Z a-z 0-9 _ -. Default `host`. */
  readonly hostName?: string | undefined;
  /** Default `file`. */
  readonly log?: LogTarget | undefined;
  /** The member `name` of log lines, if `log` is a sink. Default `sessions`. */
  readonly logName?: string | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Root of sessions that name none, and the base of relative paths of scripts. Default: the working directory. */
  readonly defaultRoot?: string | undefined;
  /** Model prices. They take precedence over the file in COX_PRICES and the built-in table. */
  readonly prices?: PriceTable | undefined;
  /** Models in code, by their full names. */
  readonly models?: OwnModels | undefined;
  /** Model of sessions that name none. Default: `COX_MODEL`. */
  readonly defaultModel?: string | undefined;
  /**
   * Tools instead of the built-in tools, crew tools and MCP servers; {@link combineToolSources} combines several
   * sources. Tools of the manifest, of served personas and of the bus are added.
   */
  readonly tools?: ToolSource | undefined;
  /** Hooks in code, in addition to those of the manifest and the bus. */
  readonly hooks?: Hooks | undefined;
  /** The manifest, `coxswain.yaml`. Its hooks and tools run in this process. */
  readonly manifest?: string | undefined;
  /** Digest from `inspectManifest`: a manifest with another digest is rejected. Default: any content is accepted. */
  readonly manifestDigest?: string | undefined;
  /** The policy in code, instead of a file. */
  readonly policy?: HostPolicyInput | undefined;
  /** Path of the policy file. Default: `COX_POLICY`, if `policy` is not given either. */
  readonly policyFile?: string | undefined;
  /** Whether senders on the bus may configure the host, unless the policy decides that. Default: false. */
  readonly trustsBus?: boolean | undefined;
  /**
   * Files and folders of this host that no session may open, in addition to its state folder and the key in
   * `NATS_NKEY`.
   */
  readonly ownPaths?: readonly string[] | undefined;
  /** Stop conditions in code, for personas that name them in `stop_when`. */
  readonly stopPredicates?: StopPredicates | undefined;
  /** Address of the metrics endpoint. Default: `COX_METRICS_PORT`. Null: no endpoint. */
  readonly metrics?: MetricsAddress | null | undefined;
  /** A metrics registry that the caller serves. */
  readonly metricsRegistry?: TelemetryOptions['registry'];
  /** Time limit for exporting spans during a stop, in milliseconds; see {@link startTelemetry}. */
  readonly spansWithinMs?: number | undefined;
  /**
   * Called at the end of a stop with the number of spans that were not exported, and the reason. The log also reports
   * them.
   */
  readonly spansLost?: ((lost: SpansLost) => void) | undefined;
  /** Replaces the host channel on the bus. */
  readonly hostChannel?: HostChannel | undefined;
}

/** Announcements that a host has received so far. An announcement arrives with some delay. */
export interface HeardOnBus {
  /** Hooks that apply to sessions of the tenant. */
  hooks(tenant: TenantId): HookTable;
  /** Names of the announced tools. */
  tools(tenant: TenantId): readonly string[];
  readonly personas: Pick<ServedPersonas, 'names' | 'find' | 'isServed'>;
}

/** A running sessions service. */
export interface SessionsService {
  readonly registered: HeardOnBus;
  /** Incarnation of this host. */
  readonly hostId: string;
  /** URL of the metrics endpoint; null without one. */
  readonly metricsUrl: string | null;
  /** Number of sessions with possibly unfinished work that were found at the start. The host is claiming them. */
  readonly found: number;
  /**
   * Resolves with the reason when the service cannot continue: the streams were deleted, or the NATS connection has
   * ended permanently. The caller then stops the service.
   */
  readonly failed: Promise<Error>;
  /**
   * Contract: rejects with the reason while NATS or its store does not respond, or this host does not receive its own
   * heartbeats.
   */
  ping(): Promise<void>;
  /**
   * Why this host cannot write the index of sessions. Otherwise the last finding of the background check of replicas,
   * if this host runs it. One sentence, or null.
   */
  remark(): string | null;
  /** Stops cleanly. In-flight calls may end first, within a time limit. */
  stop(): Promise<void>;
}

/**
 * Starts a session host on a bus and resolves when it serves.
 * @throws PolicyFileError for an invalid policy; InvalidIdError for an invalid host name; WebhookSettingsError; errors
 *   of connecting to NATS, or of a bus that is not prepared.
 */
export async function startSessionsService(options: SessionsServiceOptions): Promise<SessionsService> {
  const env = options.env ?? process.env;
  const name = readId(HostName, 'hostName', options.hostName ?? 'host');
  const ownPrices = env.COX_PRICES ? await readPrices(resolve(options.defaultRoot ?? '.', env.COX_PRICES)) : [];
  const webhook = await webhookFrom(env);
  const publishes = publishesNotices(env);
  const defaultRoot = options.defaultRoot ?? process.cwd();
  const rulesFor = await hostRules({
    file: options.policyFile,
    policy: options.policy,
    trustsBus: options.trustsBus ?? false,
    folder: resolve(defaultRoot),
    stateDir: options.stateDir,
    ownPaths: options.ownPaths ?? [],
    origins: ownOrigins(env),
    env,
  });
  const publicFetch = createPublicFetch();
  const bus = connectionTo(options.nats);
  const secrets = [bus.token, bus.password, bus.seed];
  const log = createServiceLog(options.logName ?? 'sessions', options.log ?? 'file', options.stateDir, env, secrets);
  let fail: (error: Error) => void = () => undefined;
  const failed = new Promise<Error>((resolve) => {
    fail = resolve;
  });
  // Only handlers in this process can leave unfinished asynchronous work behind.
  const endWatching = options.manifest !== undefined || options.hooks ? watchUnhandledFailures(log) : () => undefined;
  const masked = secretMask(env, secrets);
  const telemetry = await startTelemetry({
    service: 'sessions',
    of: 'host',
    env,
    log,
    masked,
    metrics: options.metrics,
    registry: options.metricsRegistry,
    closeMs: options.spansWithinMs,
  });
  let connected: Awaited<ReturnType<typeof connectNats>> | undefined;
  let storeClock: StoreClock | undefined;
  try {
    const declared =
      options.manifest === undefined ? null : await loadManifest(options.manifest, undefined, options.manifestDigest);
    const nc = await connectNats({ ...bus, name: 'cox-sessions' });
    connected = nc;
    void awaitPermanentClose(nc).then(fail);
    logConnection(nc, log);
    // During a leader election, servers do not respond for some seconds.
    const { atRisk } = await retryWhileUnavailable(() => ensureStreams(nc), log);
    if (atRisk.length > 0)
      log.warn(
        { streams: atRisk },
        "streams hold compressed blocks: kill -9 of a server can destroy that server's copy; run cox admin streams --rewrite",
      );
    const clock = new StoreClock(createSystemClock(), () => timersTimeMs(nc), log);
    storeClock = clock;
    await retryWhileUnavailable(() => clock.start(), log);
    const ids = createIds(clock);
    const served = await createNatsHooks(nc, log);
    const busTools = await createNatsTools(nc, log);
    const servedPersonas = await createNatsPersonas(nc, log);
    const own = [declared?.hooks, options.hooks].filter((hooks) => hooks !== undefined);
    const hooks = combineHooks([...own, served], log);
    const blobs = createNatsBlobs(nc, clock);
    const usage = createNatsTenantUsage(nc, log);
    const host = createSessionHost(
      {
        journal: await createNatsJournal(nc),
        inbox: await createNatsInbox(nc, log, fail),
        snapshots: createNatsSnapshots(nc, blobs),
        timers: createNatsTimers(nc),
        blobs,
        usage,
        hostChannel: options.hostChannel ?? createNatsHostChannel(nc, log),
        active: createNatsActiveSessions(nc),
        index: createNatsSessionIndex(nc),
        retention: createNatsRetention(nc),
        publisher: createNatsPublisher(nc, log),
        sender: await createNatsSender(nc),
        models: createModels({ env, clock, baseFolder: defaultRoot, publicFetch, own: options.models ?? {} }),
        tools: combineToolSources([
          options.tools ??
            combineToolSources([
              createBuiltInTools({ runCommand: { socket: env.COX_COMMAND_SOCKET || undefined } }),
              createCrewTools(),
              createMcpTools({ env, publicFetch }),
            ]),
          ...(declared?.tools.length ? [createCodeTools(declared.tools)] : []),
          servedPersonas.tools,
          busTools,
        ]),
        personas: noPersonas,
        served: servedPersonas.personas,
        rememberedRules: createNatsRememberedRules(nc),
        approvalNotices: createApprovalNotices(
          {
            webhook,
            ...(publishes ? { tell: (notice) => publishApprovalNotice(nc, notice) } : {}),
          },
          clock,
          log,
        ),
        hooks,
        clock,
        ids,
        log,
        telemetry,
        defaultRoot,
        rulesFor,
        defaultModel: options.defaultModel ?? (env.COX_MODEL || undefined),
        stopPredicates: options.stopPredicates,
        prices: [...(options.prices ?? []), ...ownPrices, ...KNOWN_PRICES],
      },
      { name, quotas: (tenant) => rulesFor(tenant, false).quotas },
    );
    const { found } = await host.start();
    const stopQueries = serveQueries(nc, log, {
      state: (ref) => host.status(ref),
      answer: (ref, from) => host.answer(ref, from),
    });
    const stopLargeFields = serveLargeFields(nc, log, blobs);
    const stopTenantKeys = serveTenantKeys(nc, log);
    // Hosts are listed by name; the first one runs the checks for all.
    const isFirst = async () => (await listHosts(nc))[0] === host.peerName;
    const streams = watchStreamFill({ isFirst, fill: () => streamFill(nc), log });
    telemetry.meters.census('coxswain_stream_fill_ratio', () => streams.fill());
    const replicas = watchReplicas({
      isFirst,
      check: (signal) => checkReplicas(nc, { pauseMs: REPLICAS_PAUSE_MS, signal }),
      log,
    });
    telemetry.meters.census('coxswain_replica_findings', () => replicas.counts());
    log.info({ host: host.id, found }, 'session host is up');
    const stop = endOnce(
      () => log.info({ host: host.id }, 'session host stops'),
      () => replicas.stop(),
      () => streams.stop(),
      () => usage.close(),
      stopQueries,
      stopLargeFields,
      stopTenantKeys,
      () => host.stop(),
      () => served.stop(),
      () => busTools.stop(),
      () => servedPersonas.stop(),
      () => clock.close(),
      () => nc.close(),
      async () => {
        const lost = await telemetry.close();
        if (lost) options.spansLost?.(lost);
      },
      endWatching,
    );
    return {
      hostId: host.id,
      metricsUrl: telemetry.metricsUrl,
      found,
      registered: {
        hooks: (tenant) => hooks.table(tenant),
        tools: (tenant) => busTools.names(tenant),
        personas: servedPersonas.personas,
      },
      failed,
      async ping() {
        await checkStoreQuorum(nc);
        if (!host.hasLease) throw new Error('it has not received its own heartbeat for too long');
      },
      remark: () => host.indexProblem ?? replicas.remark(),
      stop,
    };
  } catch (error) {
    storeClock?.close();
    await connected?.close();
    await telemetry.close();
    endWatching();
    throw error;
  }
}

/**
 * Pause in milliseconds between two streams of the background check. All streams take about ten seconds, at a few
 * hundred reads per second.
 */
const REPLICAS_PAUSE_MS = 250;

// Personas by name are served personas; a host has none of its own.
const noPersonas: Personas = { find: async () => null, names: async () => [] };
