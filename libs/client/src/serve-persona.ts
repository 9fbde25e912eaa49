/**
 * Serves a persona on the bus. Its model steps and tools run in this process, in a queue group with the other instances
 * of the same version.
 */
import { createHash } from 'node:crypto';
import {
  type Announcement,
  type AnswerQuestion,
  announce,
  awaitPermanentClose,
  fetchWhole,
  RunningWork,
  serveWork,
} from '@coxswain/bus';
import { answerHook, runHookHandler, toolWork } from '@coxswain/handlers';
import {
  type AnyHandler,
  BOUNDS,
  CoxswainError,
  canonicalJson,
  DEFAULT_TENANT,
  type HookRegistration,
  type JsonObject,
  PERSONA_SERVICE_BOUNDS,
  PERSONA_TOOL_SOURCE,
  type Persona,
  PersonaAnnouncement,
  pathText,
  problemSentences,
  readId,
  readPersonaHooks,
  type StepModels,
  TenantId,
  ToolDefinition,
  type ToolResult,
  type WorkObserver,
} from '@coxswain/protocol';
import { type NatsConnection, nuid } from '@nats-io/nats-core';
import { refuseUnknown } from './command-form.ts';
import { refuseUnprepared, servedOnOwnConnection } from './connected-nats.ts';
import { CONNECT_OPTIONS, type ConnectOptions } from './connection-options.ts';
import type { PersonaDefinition } from './define-persona.ts';
import { type CheckedTool, checkTool, type Tool, type ToolCallContext } from './define-tool.ts';
import { checkTime } from './option-checks.ts';
import { readPersonaDefinition } from './persona-form.ts';
import type { PersonaHandlers } from './persona-handlers.ts';
import { type AnswerPart, personaStep, stepWire } from './persona-step.ts';
import type { CommandBus } from './send-command.ts';
import { StepLine } from './step-line.ts';

/** A tool whose schema and code belong to another program, such as an MCP server. */
export interface ForeignTool {
  readonly definition: ToolDefinition;
  call(args: JsonObject, context: ToolCallContext): Promise<ToolResult>;
}

/** Options for serving a persona. */
export interface ServePersonaOptions {
  /**
   * The models of its steps: `createModels()` of the models adapter, or another implementation that finds models by
   * name.
   */
  readonly models: StepModels<AnswerPart>;
  /** Its tools. None may be `longRunning`: serve such a tool on its own, with `serveTool`. */
  // biome-ignore lint/suspicious/noExplicitAny: each tool has arguments of its own
  readonly tools?: readonly Tool<any>[] | undefined;
  /** Tools of its MCP servers. Their names contain `__`. */
  readonly foreignTools?: readonly ForeignTool[] | undefined;
  /** Functions of its hooks, by the `handler` names in its definition. For a definition that was read from a file. */
  readonly handlers?: PersonaHandlers | undefined;
  /** The maximum number of concurrent steps; further ones wait in a queue. 1 to 256; default 16. */
  readonly stepsAtOnce?: number | undefined;
  /**
   * Time limit of running steps and calls during a stop, in milliseconds. Then they are aborted: another instance runs
   * the steps again, and calls without a result have an unknown outcome. Default 20,000.
   */
  readonly drainMs?: number | undefined;
  /** Notified of each step, call and hook that runs here. */
  readonly observer?: WorkObserver | undefined;
  /** Called with problems outside a step. */
  readonly onProblem?: ((message: string) => void) | undefined;
}

/** The options of {@link servePersonaOn}. @internal */
export const SERVE_PERSONA_OPTIONS: Readonly<Record<keyof ServePersonaOptions, true>> = {
  models: true,
  tools: true,
  foreignTools: true,
  handlers: true,
  stepsAtOnce: true,
  drainMs: true,
  observer: true,
  onProblem: true,
};

/** A running instance of a served persona. */
export interface ServedPersonaInstance {
  readonly name: string;
  /** The served version: only sessions that have pinned it use this instance. */
  readonly version: string;
  readonly instance: string;
  /** The names of its tools. */
  readonly tools: readonly string[];
  /**
   * Takes no more requests. Resolves when the running ones have ended or were passed to other instances. The
   * announcement stays.
   */
  stop(): Promise<void>;
  /** Resolves when the connection has ended permanently: with null after {@link stop}, otherwise with the reason. */
  closed(): Promise<Error | null>;
}

/** A persona cannot be served. */
export class PersonaNotServableError extends CoxswainError {
  constructor(message: string) {
    super('persona_not_servable', message);
  }
}

/** The version of a persona is already announced with another definition. */
export class PersonaVersionTakenError extends CoxswainError {
  /** @param fields The names of the members that differ. */
  constructor(persona: string, version: string, fields: readonly string[]) {
    super(
      'persona_version_taken',
      `${persona} ${version} is announced with another definition (${fields.join(', ')}): give it another version, ` +
        `or remove the announcement with cox persona remove ${persona}`,
    );
  }
}

/** A hook and its function. */
interface ServedHook {
  readonly registration: HookRegistration;
  readonly handler: AnyHandler;
}

const DRAIN_MS = 20_000;

/**
 * Connects, announces a persona and serves it until it is stopped. Several processes can serve the same persona.
 * @throws InvalidOptionError, PersonaNotServableError, PersonaVersionTakenError, ToolDefinitionError,
 *   BusNotPreparedError if no session host has used the bus, and errors of connecting.
 */
export async function servePersona(
  definition: PersonaDefinition,
  options: ConnectOptions & ServePersonaOptions,
): Promise<ServedPersonaInstance> {
  refuseUnknown(options, { ...CONNECT_OPTIONS, ...SERVE_PERSONA_OPTIONS });
  const tenant = readId(TenantId, 'tenant', options.tenant ?? DEFAULT_TENANT);
  // Validated before it connects.
  const checked = await checkPersona(definition, options);
  return servedOnOwnConnection({ name: `coxswain-persona-${checked.announced.name}`, ...options }, (bus) =>
    serveCheckedPersona(bus, tenant, checked, options),
  );
}

/** Serves a persona on an existing connection. See {@link servePersona}. @internal */
export async function servePersonaOn(
  bus: CommandBus,
  tenant: TenantId,
  definition: PersonaDefinition,
  options: ServePersonaOptions,
): Promise<ServedPersonaInstance> {
  return serveCheckedPersona(bus, tenant, await checkPersona(definition, options), options);
}

interface CheckedPersona {
  readonly announced: Omit<PersonaAnnouncement, 'v' | 'since'>;
  readonly tools: ReadonlyMap<string, CheckedTool>;
  readonly hooks: readonly ServedHook[];
  readonly stepsAtOnce: number;
}

async function checkPersona(given: PersonaDefinition, options: ServePersonaOptions): Promise<CheckedPersona> {
  checkTime('drainMs', options.drainMs);
  const read = readPersonaDefinition(given);
  if (!read.ok) throw new PersonaNotServableError(`the persona is not valid: ${read.problems[0]}`);
  const { persona } = read;
  const { name } = persona;
  const refuse = (why: string) => new PersonaNotServableError(`the persona ${name}: ${why}`);
  const { stepsAtOnceDefault, stepsAtOnceMax, toolsMax, announcementMaxBytes } = PERSONA_SERVICE_BOUNDS;
  const stepsAtOnce = options.stepsAtOnce ?? stepsAtOnceDefault;
  if (!Number.isInteger(stepsAtOnce) || stepsAtOnce < 1 || stepsAtOnce > stepsAtOnceMax)
    throw refuse(`stepsAtOnce is 1 to ${stepsAtOnceMax}, not ${stepsAtOnce}`);
  const checked = [
    ...(await Promise.all((options.tools ?? []).map((tool) => checkTool(tool)))),
    ...(await Promise.all((options.foreignTools ?? []).map(checkForeign))),
  ];
  const tools = new Map(checked.map((tool) => [tool.announced.name, tool]));
  const long = checked.find(({ announced }) => announced.traits.long_running);
  if (long) throw refuse(`its tool ${long.announced.name} is longRunning; serve such a tool on its own`);
  if (tools.size < checked.length) throw refuse('two of its tools have the same name');
  if (tools.size > toolsMax) throw refuse(`it has ${tools.size} tools; the limit is ${toolsMax}`);
  const { mcp_servers: _, ...definition } = persona;
  const version = definition.version ?? createHash('sha256').update(canonicalJson(persona)).digest('hex').slice(0, 16);
  const hooks = servedHooks(persona, version, { ...read.handlers, ...options.handlers }, refuse);
  const announced = {
    name,
    version,
    // Without its MCP servers: they run here, and their settings may contain secrets.
    definition: { ...definition, version },
    tools: checked.map(({ announced: tool }) => ({ ...tool, source: PERSONA_TOOL_SOURCE })),
  };
  const bytes = Buffer.byteLength(JSON.stringify(announced));
  if (bytes > announcementMaxBytes)
    throw refuse(`with its tools it has ${bytes} bytes as JSON; the limit is ${announcementMaxBytes}`);
  return { announced, tools, hooks, stepsAtOnce };
}

function servedHooks(
  persona: Persona,
  version: string,
  handlers: PersonaHandlers,
  refuse: (why: string) => Error,
): readonly ServedHook[] {
  const read = readPersonaHooks(persona, version);
  if ('problem' in read) throw refuse(problemSentences([read.problem])[0] ?? 'its hooks are invalid');
  return read.hooks.flatMap(({ registration, handler, path }) => {
    if (handler === undefined) return [];
    const found = Object.hasOwn(handlers, handler) ? handlers[handler] : undefined;
    if (typeof found !== 'function')
      throw refuse(`${pathText(path)}: the code of its handler ${handler} is missing: give it in handlers`);
    return [{ registration, handler: found }];
  });
}

async function checkForeign({ definition, call }: ForeignTool): Promise<CheckedTool> {
  const { source: _, max_output: __, ...announced } = ToolDefinition.parse(definition);
  const { argumentsProblem } = await import('@coxswain/protocol/validate-arguments');
  return {
    announced,
    async check(args) {
      const problem = argumentsProblem(announced, args);
      return problem === null ? { args } : { problem };
    },
    run: (args, context) => call(args as JsonObject, context),
  };
}

async function serveCheckedPersona(
  bus: CommandBus,
  tenant: TenantId,
  { announced, tools, hooks, stepsAtOnce }: CheckedPersona,
  options: ServePersonaOptions,
): Promise<ServedPersonaInstance> {
  const { nc } = bus;
  const { name, version } = announced;
  const instance = nuid.next();
  const problem = options.onProblem ?? (() => undefined);
  const line = new StepLine(stepsAtOnce);
  const step = personaStep(name, stepWire(nc), options.models, line);
  const work = new RunningWork(
    (request) => {
      if (request.hook !== undefined) return hookNamed(nc, hooks, request.hook, options.observer);
      if (request.tool === undefined) return toolWork(step, request, 'step');
      const tool = tools.get(request.tool);
      return tool ? toolWork(tool, request) : null;
    },
    { tenant, observer: options.observer },
  );
  const since = new Date().toISOString();
  const announcement: Announcement<PersonaAnnouncement> = {
    at: { kind: 'personas', tenant, name },
    schema: PersonaAnnouncement,
    value: (first) => ({ v: 1, since: first, ...announced }),
    conflict: (before) => versionConflict(announced, before),
  };
  const serving = await serveWork(nc, {
    at: { kind: 'personas', tenant, name, version },
    instance,
    work,
    heartbeat: () => ({ version, since }),
    async announce(when) {
      const former = await announce(nc, announcement, when);
      if (former && former.version !== version)
        problem(`${name} was announced as version ${former.version}: new sessions get ${version}`);
    },
    problem,
    drainMs: options.drainMs ?? DRAIN_MS,
    onDraining: () => line.close(),
  }).catch(refuseUnprepared);
  let stopping: Promise<void> | null = null;
  return {
    name,
    version,
    instance,
    tools: [...tools.keys()],
    stop() {
      stopping ??= serving.stop();
      return stopping;
    },
    async closed() {
      const why = await awaitPermanentClose(nc);
      return stopping ? null : why;
    },
  };
}

/** The work of the persona's hook with an id; null if it has none. */
function hookNamed(
  nc: NatsConnection,
  hooks: readonly ServedHook[],
  id: string,
  observer: WorkObserver | undefined,
): AnswerQuestion | null {
  const served = hooks.filter(({ registration }) => registration.id === id);
  if (served.length === 0) return null;
  const hookAt = (at: HookRegistration['point']) => served.find(({ registration: { point } }) => point === at);
  return (received) =>
    answerHook(received, {
      registrationAt: (point) => hookAt(point)?.registration,
      fetch: (subject, want) => fetchWhole(nc, subject, want, BOUNDS.transformedViewMaxBytes),
      answer: async (question, signal) => {
        const handler = hookAt(question.registration.point)?.handler;
        if (!handler) return { status: 'failed', code: 'hook_unavailable', message: 'it is no longer served' };
        return runHookHandler(handler, question, signal);
      },
      observer,
    });
}

/** A version identifies one definition: a session must find the definition that it has pinned. */
function versionConflict(
  { name, version, definition }: CheckedPersona['announced'],
  { version: former, definition: standing }: PersonaAnnouncement,
): PersonaVersionTakenError | null {
  if (former !== version) return null;
  const keys = [...new Set([...Object.keys(definition), ...Object.keys(standing)])] as (keyof Persona)[];
  const other = keys.filter((key) => canonicalJson(definition[key] ?? null) !== canonicalJson(standing[key] ?? null));
  return other.length === 0 ? null : new PersonaVersionTakenError(name, version, other);
}
