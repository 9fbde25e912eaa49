/**
 * The tool service: serves tools of a module or a manifest on the bus, and reloads them when one of their files
 * changes.
 */

import { basename, resolve } from 'node:path';
import { type LoadedTools, loadTools } from '@coxswain/adapter-hooks';
import { createServiceLog, type LogTarget, secretMask } from '@coxswain/adapter-log';
import {
  connectionTo,
  endOnce,
  endTogether,
  ensureBuckets,
  type NamedBus,
  withConnection,
} from '@coxswain/adapter-nats';
import { type MetricsAddress, startWorkerTelemetry } from '@coxswain/adapter-telemetry';
import { connect, type ServedTool, type Tool } from '@coxswain/client';
import { HookModuleError } from '@coxswain/handlers/load';
import { DEFAULT_TENANT, STREAMS } from '@coxswain/protocol';
import { watchFiles } from './watch-files.ts';

/** Options of the tool service. */
export interface ToolServiceOptions {
  /** The module, TypeScript or JavaScript, whose default export is a tool or a list of tools; or a manifest in YAML. */
  readonly file: string;
  readonly nats: NamedBus;
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

/** A running tool service. */
export interface ToolService {
  /** Names of the tools that it currently serves. */
  readonly tools: readonly string[];
  /** URL of the metrics endpoint; null without one. */
  readonly metricsUrl: string | null;
  /**
   * Resolves with the error when the NATS connection has ended permanently, for example after its key was revoked. The
   * caller then stops the service.
   */
  readonly failed: Promise<Error>;
  /** Contract: rejects with the reason while NATS does not respond. */
  ping(): Promise<void>;
  /** Accepts no further calls and stops when the in-flight calls have ended. The announcements stay. */
  stop(): Promise<void>;
  /**
   * Stops immediately after an uncaught exception. Hosts get the information that the outcome of in-flight calls is
   * unknown.
   */
  abandon(why: Error): Promise<void>;
}

const FLUSHED_WITHIN_MS = 1_000;

/** A module of tools cannot be loaded, or has invalid exports. The message starts with its path. */
export class ToolModuleError extends Error {
  override readonly name = 'ToolModuleError';
  readonly code = 'tool_module_invalid';
}

/**
 * Loads the tools and serves them.
 * @throws ToolModuleError, ManifestError, ToolDefinitionError; errors of connecting to NATS, or of a bus that is not
 *   prepared.
 */
export async function startToolService(options: ToolServiceOptions): Promise<ToolService> {
  const file = resolve(options.file);
  const bus = connectionTo(options.nats);
  const env = options.env ?? process.env;
  const secrets = [bus.token, bus.password, bus.seed];
  const log = createServiceLog('tools', options.log ?? 'stdout', options.stateDir, env, secrets);
  const loadedAtMs = Date.now();
  const loaded = await toolsOf(file);
  await withConnection({ ...bus, name: 'cox-tool' }, (nc) => ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]));
  const masked = secretMask(env, secrets);
  const telemetry = await startWorkerTelemetry({ service: 'tools', env, log, masked, metrics: options.metrics });
  const { observer } = telemetry;
  const client = await connect({
    servers: bus.servers,
    token: bus.token,
    user: bus.user,
    pass: bus.password,
    seed: bus.seed,
    inboxPrefix: bus.inboxPrefix,
    tenant: options.tenant ?? options.nats.credentials?.tenant ?? DEFAULT_TENANT,
    name: `cox-tool-${basename(file)}`,
  }).catch(async (error: Error) => {
    await telemetry.close();
    throw error;
  });
  const served = new Map<string, ServedTool>();
  /** Removed tools whose in-flight calls have not ended. */
  const leaving = new Set<ServedTool>();
  let watch: ReturnType<typeof watchFiles> | undefined;
  const stop = endOnce(
    // A start that failed has its error, and no line of its own.
    () => watch && log.info({ file, tools: [...served.keys()] }, 'tool service stops'),
    () => watch?.end(),
    () => endTogether([...served.values(), ...leaving].map((tool) => tool.stop())),
    () => client.close(),
    () => telemetry.close(),
  );
  const take = async (tools: readonly Tool[]) => {
    for (const tool of tools) {
      const known = served.get(tool.name);
      if (known) await known.update(tool);
      else
        served.set(
          tool.name,
          await client.serveTool(tool, { observer, onProblem: (problem) => log.warn({ file }, problem) }),
        );
    }
    const names = new Set(tools.map(({ name }) => name));
    const dropped = [...served].filter(([name]) => !names.has(name));
    for (const [name, tool] of dropped) {
      served.delete(name);
      leaving.add(tool);
    }
    // In-flight calls of removed tools continue. The other tools are served meanwhile.
    for (const [name, tool] of dropped)
      void tool
        .stop()
        .then(
          () => log.info({ tool: name }, 'a tool is no longer served'),
          (error: unknown) => log.warn({ tool: name, error }, 'a removed tool did not stop in order'),
        )
        .finally(() => leaving.delete(tool));
  };
  try {
    await take(loaded.tools);
  } catch (error) {
    // A failure of the stop has the same cause, or a less useful one.
    await stop().catch(() => undefined);
    throw error;
  }
  watch = watchFiles(loaded.files, loadedAtMs, log, async () => {
    const next = await toolsOf(file);
    await take(next.tools);
    log.info({ file, tools: [...served.keys()] }, 'tools reloaded');
    return next.files;
  });
  log.info({ file, tools: [...served.keys()] }, 'tool service is up');
  return {
    metricsUrl: telemetry.metricsUrl,
    get tools() {
      return [...served.keys()];
    },
    // A connection that `stop` has closed did not fail.
    failed: client.closed().then((why) => why ?? new Promise<never>(() => undefined)),
    ping: async () => void (await client.roundTripMs()),
    stop,
    async abandon(error) {
      const running = [...served.values(), ...leaving].reduce((sum, tool) => sum + tool.abandon(), 0);
      log.error(
        { file, error, running },
        'uncaught exception in the code of a tool: the outcome of in-flight calls is unknown',
      );
      // Published messages have arrived when the server responds.
      const late = new Promise((resolve) => setTimeout(resolve, FLUSHED_WITHIN_MS).unref());
      await Promise.race([client.roundTripMs().catch(() => undefined), late]);
      await client.close();
      await telemetry.close();
    },
  };
}

async function toolsOf(file: string): Promise<LoadedTools> {
  return loadTools(file).catch((error: Error) => {
    throw error instanceof HookModuleError ? new ToolModuleError(error.message, { cause: error }) : error;
  });
}
