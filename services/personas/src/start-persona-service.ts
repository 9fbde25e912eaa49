/** The persona service: runs model steps and tools of one or more personas in a separate process. */
import { delimiter } from 'node:path';
import { createServiceLog, type LogTarget, secretMask } from '@coxswain/adapter-log';
import { createModels, type OwnModels, ownOrigins } from '@coxswain/adapter-models';
import {
  connectionTo,
  endOnce,
  endTogether,
  ensureBuckets,
  type NamedBus,
  withConnection,
} from '@coxswain/adapter-nats';
import { type MetricsAddress, startWorkerTelemetry } from '@coxswain/adapter-telemetry';
import {
  connect,
  type PersonaHandlers,
  PersonaNotServableError,
  personaFromWire,
  type ServedPersonaInstance,
  type Tool,
} from '@coxswain/client';
import type { Models } from '@coxswain/ports';
import {
  type AllowedOrigin,
  DEFAULT_TENANT,
  type HostRules,
  KEY_OWNERS,
  type ModelSettings,
  type Persona,
  type PersonaInput,
  problemSentences,
  readPersona,
  rulesFor,
  STREAMS,
} from '@coxswain/protocol';
import { type McpOfPersona, openMcpOf } from './mcp-of-persona.ts';

/** A loaded persona. */
export interface PersonaToServe {
  /** The definition in the form of a file. */
  readonly definition: PersonaInput;
  /** Code of its hooks, by the `handler` in the definition. */
  readonly handlers?: PersonaHandlers | undefined;
  readonly tools?: readonly Tool[] | undefined;
  /** The base of relative paths of its scripts, and the working directory of its MCP servers. */
  readonly folder: string;
}

/** Options of the persona service. */
export interface PersonaServiceOptions {
  /** One or more personas with different names. */
  readonly personas: readonly PersonaToServe[];
  readonly nats: NamedBus;
  /** Default: the tenant of the key, otherwise `default`. */
  readonly tenant?: string | undefined;
  /** Models in code, by their full names. */
  readonly models?: OwnModels | undefined;
  /** Concurrent steps per persona. Default 16. */
  readonly stepsAtOnce?: number | undefined;
  /** Time limit for in-flight steps and calls during a stop, in milliseconds. Default 20,000. */
  readonly drainMs?: number | undefined;
  /** Folder of the log file. */
  readonly stateDir: string;
  /** Default `stdout`. */
  readonly log?: LogTarget | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Address of the metrics endpoint. Default: `COX_METRICS_PORT`. Null: no endpoint. */
  readonly metrics?: MetricsAddress | null | undefined;
}

/** A running persona service. */
export interface PersonaService {
  readonly personas: readonly Pick<ServedPersonaInstance, 'name' | 'version' | 'instance' | 'tools'>[];
  /** URL of the metrics endpoint; null without one. */
  readonly metricsUrl: string | null;
  /**
   * Resolves with the error when the NATS connection has ended permanently, for example after its key was revoked. The
   * caller then stops the service.
   */
  readonly failed: Promise<Error>;
  /** Contract: rejects with the reason while NATS does not respond. */
  ping(): Promise<void>;
  /**
   * Accepts no further work and stops. In-flight steps and calls end within `drainMs`, or continue at another instance.
   * The announcements stay.
   */
  stop(): Promise<void>;
}

/**
 * Serves personas.
 * @throws PersonaNotServableError, PersonaVersionTakenError, ToolDefinitionError, PersonaServersError; errors of
 *   connecting to NATS, or of a bus that is not prepared.
 */
export async function startPersonaService(options: PersonaServiceOptions): Promise<PersonaService> {
  const bus = connectionTo(options.nats);
  const env = options.env ?? process.env;
  const tenant = options.tenant ?? options.nats.credentials?.tenant ?? DEFAULT_TENANT;
  const secrets = [bus.token, bus.password, bus.seed];
  const log = createServiceLog('personas', options.log ?? 'stdout', options.stateDir, env, secrets);
  const personas = options.personas.map(({ definition, ...rest }) => ({ ...rest, persona: checked(definition) }));
  const names = personas.map(({ persona }) => persona.name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) throw new PersonaNotServableError(`two personas have the name ${twice}`);
  await withConnection({ ...bus, name: 'cox-persona' }, (nc) => ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]));
  const masked = secretMask(env, secrets);
  const telemetry = await startWorkerTelemetry({ service: 'personas', env, log, masked, metrics: options.metrics });
  const { observer } = telemetry;
  const client = await connect({
    servers: bus.servers,
    token: bus.token,
    user: bus.user,
    pass: bus.password,
    seed: bus.seed,
    inboxPrefix: bus.inboxPrefix,
    tenant,
    name: `cox-persona-${names.join('-').slice(0, 64)}`,
  }).catch(async (error: Error) => {
    await telemetry.close();
    throw error;
  });
  const open: McpOfPersona[] = [];
  const served: ServedPersonaInstance[] = [];
  const stop = endOnce(
    // A start that failed has its error, and no line of its own.
    () => served.length === personas.length && log.info({ personas: names }, 'persona service stops'),
    () => endTogether(served.map((one) => one.stop())),
    () => endTogether(open.map((one) => one.close())),
    () => client.close(),
    () => telemetry.close(),
  );
  try {
    for (const { persona, handlers, tools, folder } of personas) {
      const mcp = await openMcpOf(persona.name, tenant, persona.mcp_servers ?? {}, folder, env, log);
      open.push(mcp);
      served.push(
        await client.servePersona(personaFromWire(persona), {
          models: modelsOf(persona, env, folder, options.models ?? {}),
          tools,
          handlers,
          foreignTools: mcp.tools,
          stepsAtOnce: options.stepsAtOnce,
          drainMs: options.drainMs,
          observer,
          onProblem: (problem) => log.warn({ persona: persona.name }, problem),
        }),
      );
    }
  } catch (error) {
    // A failure of the stop has the same cause, or a less useful one.
    await stop().catch(() => undefined);
    throw error;
  }
  for (const { name, version, instance, tools } of served)
    log.info({ persona: name, version, instance, tools }, 'persona service is up');
  return {
    personas: served.map(({ name, version, instance, tools }) => ({ name, version, instance, tools })),
    metricsUrl: telemetry.metricsUrl,
    // A connection that `stop` has closed did not fail.
    failed: client.closed().then((why) => why ?? new Promise<never>(() => undefined)),
    ping: async () => void (await client.roundTripMs()),
    stop,
  };
}

/**
 * The models of a persona. Hosts pass on the model that a start names, so the service does not trust these settings.
 * Keys are sent only to the providers' own origins, origins in the environment, and the `base_url` in the persona's
 * definition. Files of scripted models must be in the folder of the persona or in COX_ROOTS. The model of the
 * definition is exempt from this rule.
 */
function modelsOf({ model }: Persona, env: NodeJS.ProcessEnv, folder: string, own: OwnModels): Models {
  const models = createModels({ env, baseFolder: folder, own });
  const named: ModelSettings | undefined = model;
  const declared = named?.base_url === undefined ? [] : keyedOrigins(named.base_url);
  const host = { folder, origins: [...ownOrigins(env), ...declared], trustsBus: false };
  const roots = [folder, ...(env.COX_ROOTS ?? '').split(delimiter).filter((root) => root !== '')];
  const rules = rulesFor({ roots }, host, DEFAULT_TENANT, true);
  const rulesOf = ({ name }: ModelSettings): HostRules => (name === named?.name ? { ...rules, roots: 'any' } : rules);
  return {
    check: (settings) => models.check(settings, rulesOf(settings)),
    resolve: (settings) => models.resolve(settings, rulesOf(settings)),
  };
}

function keyedOrigins(url: string): AllowedOrigin[] {
  const { origin } = new URL(url);
  return KEY_OWNERS.map((key_of) => ({ origin, key_of }));
}

function checked(definition: unknown) {
  const read = readPersona(definition);
  if (read.ok) return read.data;
  throw new PersonaNotServableError(`the persona is not valid: ${problemSentences(read.problems)[0]}`);
}
