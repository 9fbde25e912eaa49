/** The sessions service: a session host wired to NATS, models, MCP servers and the built-in tools. Wiring only. */

import { resolve } from 'node:path';
import { combineHooks, loadManifest } from '@coxswain/adapter-hooks';
import { createServiceLog, type LogTarget, secretMask } from '@coxswain/adapter-log';
import { createMcpTools } from '@coxswain/adapter-mcp';
import { createIds, createSystemClock, StoreClock } from '@coxswain/adapter-memory';
import { createModels, KNOWN_PRICES, type OwnModels, ownOrigins, readPrices } from '@coxswain/adapter-models';
import {
  checkReplicas,
  connectionTo,
  connectNats,
  createNatsActiveSessions,
  createNatsBlobs,
  createNatsHooks,
  createNatsHostLine,
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
  lostForGood,
  type NamedBus,
  serveLargeFields,
  serveQueries,
  serveTenantKeys,
  storeAnswers,
  streamFill,
  tellApproval,
  timersTimeMs,
  whenAnswered,
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
import { watchLeftBehind } from '@coxswain/handlers/load';
import type { Hooks, HostLine, Personas, ServedPersonas, StopPredicates, ToolSource } from '@coxswain/ports';
import {
  type HookTable,
  HostName,
  type HostPolicyInput,
  type PriceTable,
  readId,
  type TenantId,
} from '@coxswain/protocol';
import { createSessionHost } from '@coxswain/session';
import { createApprovalNotices, webhookFrom } from './approval-notices.ts';
import { hostRules } from './load-policy.ts';
import { watchReplicas } from './watch-replicas.ts';
import { watchStreamFill } from './watch-stream-fill.ts';

/** What the service is started with. */
export interface SessionsServiceOptions {
  readonly nats: NamedBus;
  /** Where the log file lies. */
  readonly stateDir: string;
  /** A name for people, 1 to 64 characters of A-Z a-z 0-9 _ -. */
  readonly hostName?: string | undefined;
  /** Default `file`. */
  readonly log?: LogTarget | undefined;
  /** The member `name` of log lines that a sink takes. Default `sessions`. */
  readonly logName?: string | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** The root of sessions that name none, and where relative paths of scripts begin; the working directory by default. */
  readonly defaultRoot?: string | undefined;
  /** What models cost, before the rows of the file that COX_PRICES names and of the built-in table. */
  readonly prices?: PriceTable | undefined;
  /** Models of the program that runs the service, by their whole names. */
  readonly models?: OwnModels | undefined;
  /** The model of sessions that name none; `COX_MODEL` if not given. */
  readonly defaultModel?: string | undefined;
  /** In place of the built-in tools and of MCP servers, which {@link combineToolSources} puts together with others; those of the bus are there besides. */
  readonly tools?: ToolSource | undefined;
  /** Hooks of the program that runs the service, beside those of the manifest and of the bus. */
  readonly hooks?: Hooks | undefined;
  /** The manifest, `coxswain.yaml`: its hooks and tools run in this process. */
  readonly manifest?: string | undefined;
  /** The digest of `inspectManifest`: a manifest with another content is refused. Any content, if not given. */
  readonly manifestDigest?: string | undefined;
  /** What requests may name; instead of the file. */
  readonly policy?: HostPolicyInput | undefined;
  /** The file that declares it; `COX_POLICY` if neither is given. */
  readonly policyFile?: string | undefined;
  /** Whether senders on the bus may configure the host if the policy does not say it. Default: false. */
  readonly trustsBus?: boolean | undefined;
  /** Files and folders of this host, in addition to its state folder and the key of `NATS_NKEY`: no session opens them. */
  readonly ownPaths?: readonly string[] | undefined;
  /** Stop conditions in code, for personas that name them in stop_when. */
  readonly stopPredicates?: StopPredicates | undefined;
  /** Where its meters are served; without it, where `COX_METRICS_PORT` says. Null: nowhere. */
  readonly metrics?: MetricsAddress | null | undefined;
  /** A registry that the caller serves itself. */
  readonly metricsRegistry?: TelemetryOptions['registry'];
  /** How long the end may wait for a collector of spans; see {@link startTelemetry}. */
  readonly spansWithinMs?: number | undefined;
  /** Told at the end of spans that no collector has, beside the log. */
  readonly spansLost?: ((lost: SpansLost) => void) | undefined;
  /** In place of the line between hosts on the bus: what this host hears of others, and they of it. */
  readonly hostLine?: HostLine | undefined;
}

/** What a host has heard of by now: whoever serves something is not known to it at once. */
export interface HeardOnBus {
  /** The hooks that sessions of the tenant see. */
  hooks(tenant: TenantId): HookTable;
  /** The tools that are announced, by name. */
  tools(tenant: TenantId): readonly string[];
  readonly personas: Pick<ServedPersonas, 'names' | 'find' | 'isServed'>;
}

/** A service that runs. */
export interface SessionsService {
  readonly heard: HeardOnBus;
  /** This host's incarnation. */
  readonly hostId: string;
  /** Where its meters are served; null where they are not. */
  readonly metricsUrl: string | null;
  /** Sessions that were found at the start, may have something to do, and are being taken up. */
  readonly found: number;
  /** Resolves where the service can do no more, with why: the streams were deleted, or the bus lets it in no more. Stop it then. */
  readonly failed: Promise<Error>;
  /** Contract: rejects, with why, while the bus or its store does not answer, or this host has not heard itself on it. */
  ping(): Promise<void>;
  /** What the background check of replicas has found last, in one sentence; null where nothing is wrong, or another host checks. */
  remark(): string | null;
  /** Stops in order; calls under way may end first, within a bound. */
  stop(): Promise<void>;
}

/**
 * Starts a session host on a bus and resolves when it serves.
 * @throws PolicyFileError if the policy is not valid, InvalidIdError where the host's name is none, and what the adapters throw where the bus cannot be reached or is not fit.
 */
export async function startSessionsService(options: SessionsServiceOptions): Promise<SessionsService> {
  const env = options.env ?? process.env;
  const name = readId(HostName, 'hostName', options.hostName ?? 'host');
  const ownPrices = env.COX_PRICES ? await readPrices(resolve(options.defaultRoot ?? '.', env.COX_PRICES)) : [];
  const webhook = await webhookFrom(env);
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
  // Without handlers in this process there is nothing that they could leave behind.
  const endWatching = options.manifest !== undefined || options.hooks ? watchLeftBehind(log) : () => undefined;
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
    void lostForGood(nc).then(fail);
    logConnection(nc, log);
    // Where servers are choosing a leader just now, nobody says anything for some seconds.
    const { atRisk } = await whenAnswered(() => ensureStreams(nc), log);
    if (atRisk.length > 0)
      log.warn(
        { streams: atRisk },
        "streams hold compressed blocks: kill -9 of a server can destroy that server's copy; run cox admin streams --rewrite",
      );
    const clock = new StoreClock(createSystemClock(), () => timersTimeMs(nc), log);
    storeClock = clock;
    await whenAnswered(() => clock.start(), log);
    const ids = createIds(clock);
    const served = await createNatsHooks(nc, log);
    const busTools = await createNatsTools(nc, log);
    const servedPersonas = await createNatsPersonas(nc, log);
    const own = [declared?.hooks, options.hooks].filter((hooks) => hooks !== undefined);
    const hooks = combineHooks([...own, served], log);
    const blobs = createNatsBlobs(nc);
    const usage = createNatsTenantUsage(nc, log);
    const host = createSessionHost(
      {
        journal: await createNatsJournal(nc),
        inbox: await createNatsInbox(nc, log, fail),
        snapshots: createNatsSnapshots(nc, blobs),
        timers: createNatsTimers(nc),
        blobs,
        usage,
        hostLine: options.hostLine ?? createNatsHostLine(nc, log),
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
          { webhook, ...(env.COX_APPROVAL_SUBJECT === 'on' ? { tell: (notice) => tellApproval(nc, notice) } : {}) },
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
    // Hosts are listed by name: one of them checks for all.
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
    const stop = endOnce(async () => {
      log.info({ host: host.id }, 'session host stops');
      replicas.stop();
      streams.stop();
      usage.close();
      stopQueries();
      stopLargeFields();
      stopTenantKeys();
      await host.stop();
      await served.stop();
      await busTools.stop();
      await servedPersonas.stop();
      clock.close();
      await nc.close();
      const lost = await telemetry.close();
      if (lost) options.spansLost?.(lost);
      endWatching();
    });
    return {
      hostId: host.id,
      metricsUrl: telemetry.metricsUrl,
      found,
      heard: {
        hooks: (tenant) => hooks.table(tenant),
        tools: (tenant) => busTools.names(tenant),
        personas: servedPersonas.personas,
      },
      failed,
      async ping() {
        await storeAnswers(nc);
        if (!host.isHeard) throw new Error('it has not received its own heartbeat for too long');
      },
      remark: () => replicas.remark(),
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

/** Between two streams of the background check: all streams are read within some ten seconds, a few hundred reads a second. */
const REPLICAS_PAUSE_MS = 250;

// Personas by name are those that are served; a host has none of its own.
const noPersonas: Personas = { find: async () => null, names: async () => [] };
