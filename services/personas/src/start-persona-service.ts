/** The persona service: the model steps and tools of one or several personas, in a process of their own. */
import { delimiter } from 'node:path';
import { createServiceLog, type LogTarget, secretMask } from '@coxswain/adapter-log';
import { createModels, type OwnModels, ownOrigins } from '@coxswain/adapter-models';
import { connectionTo, endOnce, ensureBuckets, type NamedBus, withConnection } from '@coxswain/adapter-nats';
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

/** One persona, as it was loaded. */
export interface PersonaToServe {
  /** In the form of a file. */
  readonly definition: PersonaInput;
  /** Code of its hooks, by what the definition has as their `handler`. */
  readonly handlers?: PersonaHandlers | undefined;
  readonly tools?: readonly Tool[] | undefined;
  /** Where the relative paths of its scripts begin, and where its MCP servers are started. */
  readonly folder: string;
}

/** What the service is started with. */
export interface PersonaServiceOptions {
  /** 1 or more, of different names. */
  readonly personas: readonly PersonaToServe[];
  readonly nats: NamedBus;
  /** By default the one of the key that lets the service in, else `default`. */
  readonly tenant?: string | undefined;
  /** Models of the program that runs the service, by their whole names. */
  readonly models?: OwnModels | undefined;
  /** Steps at once, of each persona. Default 16. */
  readonly stepsAtOnce?: number | undefined;
  /** How long steps and calls may still take when it stops. Default 20,000. */
  readonly drainMs?: number | undefined;
  /** Where the log file lies. */
  readonly stateDir: string;
  /** Default `stdout`. */
  readonly log?: LogTarget | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Where its meters are served; without it, where `COX_METRICS_PORT` says. Null: nowhere. */
  readonly metrics?: MetricsAddress | null | undefined;
}

/** A service that runs. */
export interface PersonaService {
  readonly personas: readonly Pick<ServedPersonaInstance, 'name' | 'version' | 'instance' | 'tools'>[];
  /** Where its meters are served; null where they are not. */
  readonly metricsUrl: string | null;
  /** Resolves where the bus lets the service in no more. Stop it then. */
  readonly failed: Promise<Error>;
  /** Contract: rejects, with why, while the bus does not answer. */
  ping(): Promise<void>;
  /** Takes nothing more; what runs ends, or goes elsewhere. The announcements stay. */
  stop(): Promise<void>;
}

/**
 * Serves personas.
 * @throws PersonaNotServableError, PersonaVersionTakenError, ToolDefinitionError, PersonaServersError, and what the bus
 *   throws where it cannot be reached or is not fit.
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
  const stop = endOnce(async () => {
    log.info({ personas: names }, 'persona service stops');
    await Promise.all(served.map((one) => one.stop()));
    await Promise.all(open.map((one) => one.close()));
    await client.close();
    await telemetry.close();
  });
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
    await stop();
    throw error;
  }
  for (const { name, version, instance, tools } of served)
    log.info({ persona: name, version, instance, tools }, 'persona service is up');
  return {
    personas: served.map(({ name, version, instance, tools }) => ({ name, version, instance, tools })),
    metricsUrl: telemetry.metricsUrl,
    // A connection that was closed by stopping has not failed.
    failed: client.closed().then((why) => why ?? new Promise<never>(() => undefined)),
    ping: async () => void (await client.roundTripMs()),
    stop,
  };
}

/**
 * The models of a persona. Hosts pass on what the start of a session names, so its sender is not trusted here: keys go to the
 * providers' own origins, to those that the environment names, and to the address in the definition of the persona. No other
 * address is asked, and files of scripted models lie in the folder of the persona or in one that COX_ROOTS names.
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
