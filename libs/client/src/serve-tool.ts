/** Serves a tool on the bus: announces it, sends heartbeats, and answers calls in a queue group. */
import { awaitPermanentClose, RunningWork, serveWork } from '@coxswain/bus';
import { toolWork } from '@coxswain/handlers';
import { DEFAULT_TENANT, type JsonObject, readId, TenantId, toolDigest, type WorkObserver } from '@coxswain/protocol';
import { nuid } from '@nats-io/nats-core';
import { refuseUnknown } from './command-form.ts';
import { refuseUnprepared, servedOnOwnConnection } from './connected-nats.ts';
import { CONNECT_OPTIONS, type ConnectOptions } from './connection-options.ts';
import { checkTool, type InputSchema, type Tool, ToolDefinitionError } from './define-tool.ts';
import { checkTime } from './option-checks.ts';
import { watchOtherInstances } from './other-instances.ts';
import { storeCallOutcome } from './send-call-outcome.ts';
import type { CommandBus } from './send-command.ts';
import { type ToolSuccession, watchSuccession } from './tool-succession.ts';
import { watchToolVersions } from './tool-versions.ts';

/** Options for serving a tool. */
export interface ServeToolOptions {
  /** Time limit of running calls during a stop, in milliseconds; then they are aborted. Default 600,000. */
  readonly drainMs?: number | undefined;
  /**
   * With succession, one instance at a time receives the calls: the last one to claim them. When it ends, the previous
   * one receives them again. `claims`: claim at the start. `waits`: receive calls after {@link ServedTool.claim}, or
   * while no other instance exists.
   */
  readonly succession?: 'claims' | 'waits' | undefined;
  /** Notified of each call that runs here. */
  readonly observer?: WorkObserver | undefined;
  /** Called with problems outside a call: an outcome that could not be sent, an invalid request. */
  readonly onProblem?: ((message: string) => void) | undefined;
}

/** The options of {@link serveToolOn}. @internal */
export const SERVE_TOOL_OPTIONS: Readonly<Record<keyof ServeToolOptions, true>> = {
  drainMs: true,
  succession: true,
  observer: true,
  onProblem: true,
};

/** A running instance of a served tool. */
export interface ServedTool {
  readonly name: string;
  /** The id of this instance. */
  readonly instance: string;
  /**
   * Serves another version of the tool from now on.
   * @throws ToolDefinitionError, errors of NATS; then the previous version stays.
   */
  update(tool: Tool): Promise<void>;
  /**
   * With `succession`: receives the calls from now on. Resolves when the previous instance has stopped receiving them,
   * or after about four seconds.
   */
  claim(): Promise<void>;
  /**
   * Takes no more calls. Resolves when the accepted ones have ended. The announcement stays, except that of a tool for
   * one session.
   */
  stop(): Promise<void>;
  /**
   * Abandons its calls, for a process that cannot continue. Within 4 seconds, hosts treat them as after a kill:
   * `idempotent` calls move, the outcome of other calls is unknown.
   * @returns their number.
   */
  abandon(): number;
  /**
   * Resolves when the connection has ended permanently: with null after {@link stop}, otherwise with the reason. Call
   * {@link stop} then.
   */
  closed(): Promise<Error | null>;
}

const DRAIN_MS = 600_000;

/**
 * Connects, announces a tool and serves it until it is stopped. Several processes can serve the same tool.
 * @throws InvalidOptionError, ToolDefinitionError, BusNotPreparedError if no session host has used the bus, and errors
 *   of connecting.
 */
export async function serveTool<const Schema extends InputSchema | JsonObject>(
  tool: Tool<Schema>,
  options: ConnectOptions & ServeToolOptions,
): Promise<ServedTool> {
  refuseUnknown(options, { ...CONNECT_OPTIONS, ...SERVE_TOOL_OPTIONS });
  const tenant = readId(TenantId, 'tenant', options.tenant ?? DEFAULT_TENANT);
  // Validated before it connects.
  checkTime('drainMs', options.drainMs);
  await checkTool(tool);
  return servedOnOwnConnection({ name: 'coxswain-tool', ...options }, (bus) =>
    serveToolOn(bus, tenant, tool as unknown as Tool, options),
  );
}

/** Serves a tool on an existing connection. See {@link serveTool}. @internal */
export async function serveToolOn(
  bus: CommandBus,
  tenant: TenantId,
  definition: Tool,
  options: ServeToolOptions = {},
): Promise<ServedTool> {
  const { nc } = bus;
  checkTime('drainMs', options.drainMs);
  let tool = await checkTool(definition);
  const { name } = tool.announced;
  const instance = nuid.next();
  const problem = options.onProblem ?? (() => undefined);
  const work = new RunningWork((request) => toolWork(tool, request), {
    tenant,
    observer: options.observer,
    sendOutcome: (ref, call, ending) => storeCallOutcome(bus, ref, call, ending, problem),
  });
  const others = watchOtherInstances(bus, tenant, name, instance);
  const versions = watchToolVersions(bus, tenant, { name, tool: () => tool, problem }, others);
  const since = new Date().toISOString();
  let succession: ToolSuccession | null = null;
  const serving = await serveWork(nc, {
    at: { kind: 'tools', tenant, name },
    instance,
    work,
    heartbeat: () => ({
      version: toolDigest(tool.announced),
      since,
      ...(succession ? { claimed: succession.claimed } : {}),
    }),
    startsInStandby: options.succession === 'waits',
    announce: (when) => (when === 'always' ? versions.announceFirst() : versions.announceWhereMissing()),
    problem,
    drainMs: options.drainMs ?? DRAIN_MS,
  }).catch((error: unknown) => {
    versions.stop();
    others.stop();
    return refuseUnprepared(error);
  });
  versions.start();
  if (options.succession !== undefined) {
    const { setServing, sendHeartbeat } = serving;
    succession = watchSuccession(bus, { name, instance, setServing, sendHeartbeat, problem }, others);
    if (options.succession === 'claims') await succession.claim(true);
  }
  let stopping: Promise<void> | null = null;
  return {
    name,
    instance,
    async update(next) {
      const checked = await checkTool(next);
      if (checked.announced.name !== name)
        throw new ToolDefinitionError(`its name is ${name}; another name is another tool`);
      const before = tool;
      tool = checked;
      try {
        await versions.announceNext(tool);
      } catch (error) {
        tool = before;
        throw error;
      }
    },
    async claim() {
      await succession?.claim();
    },
    stop() {
      succession?.stop();
      // A version is not announced again while its instance stops.
      versions.stop();
      stopping ??= serving
        .stop()
        .then(async () => {
          // No other process will serve the tool of one session.
          if (tool.announced.for_session !== undefined && !nc.isClosed()) await versions.withdraw();
        })
        .finally(() => others.stop());
      return stopping;
    },
    abandon() {
      succession?.stop();
      versions.stop();
      others.stop();
      return serving.abandon();
    },
    async closed() {
      const why = await awaitPermanentClose(nc);
      return stopping ? null : why;
    },
  };
}
