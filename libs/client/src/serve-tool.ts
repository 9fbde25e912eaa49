/**
 * Serves a tool on the bus: announces it, says that it lives, and answers in a queue group.
 *
 * V1: It listens before it announces.
 * V2: What every instance hears (probes, aborts) it hears until its last call has ended, also while it drains.
 * V3: Leaving is no deregistration: what it was asked is answered, and the announcement stays.
 */
import {
  DEFAULT_TENANT,
  isAnswerSubject,
  isKeyOf,
  type JsonObject,
  readId,
  type SessionRef,
  subjects,
  TenantId,
  TOOL_LIVENESS,
  TOOL_QUEUE_GROUP,
  ToolAsked,
  type ToolBeat,
  ToolOrder,
  type ToolSaid,
  toolDigest,
} from '@coxswain/protocol';
import { jetstream } from '@nats-io/jetstream';
import { type Msg, nuid, type Subscription } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import { announceTool } from './announce-tool.ts';
import { CommandRejectedError } from './client-errors.ts';
import { closedForGood } from './closed-for-good.ts';
import { type ConnectOptions, natsOptions } from './connection-options.ts';
import {
  type ArgumentSchema,
  type CheckedTool,
  checkTool,
  type ServedToolDefinition,
  ToolDefinitionError,
} from './define-tool.ts';
import { sendCallOutcome, type TakenUpCall } from './send-call-outcome.ts';
import type { CommandBus } from './send-command.ts';
import { failed, ToolCalls } from './tool-calls.ts';
import type { CallEnding } from './tool-ledger.ts';

/** How a tool is served. */
export interface ServeToolOptions {
  /** How long calls may still take when it stops; those that have not ended then are told to stop. Default 600,000. */
  readonly drainMs?: number | undefined;
  /** Told what went wrong beside a call: an outcome that could not be sent, a message that is no question. */
  readonly onProblem?: ((message: string) => void) | undefined;
}

/** A tool that is served. */
export interface ServedTool {
  readonly name: string;
  /** This instance. */
  readonly instance: string;
  /** Serves another version of the tool from now on. @throws ToolDefinitionError; then the one before is served. */
  update(tool: ServedToolDefinition): Promise<void>;
  /** Takes no more calls, and resolves when those that it has have ended. The announcement stays. */
  stop(): Promise<void>;
  /** Resolves when the connection is over: with null where it was stopped, else with why the bus lets it in no more, for good. Stop it then. */
  closed(): Promise<Error | null>;
}

const DRAIN_MS = 600_000;
/** From being told to stop to being given up, at the end of a drain. */
const ABORT_GRACE_MS = 5_000;
/** How often an outcome that the bus does not take is sent again, and how long it waits in between at most. */
const BRINGS_MAX = 120;
const BRING_AGAIN_MAX_MS = 5_000;

/**
 * Connects, announces a tool and serves it until it is stopped. Any number of processes may serve the same one.
 * @throws ToolDefinitionError, BusNotPreparedError where no host has ever run on the bus, and what connecting throws.
 */
export async function serveTool<const Schema extends ArgumentSchema | JsonObject>(
  tool: ServedToolDefinition<Schema>,
  options: ConnectOptions & ServeToolOptions,
): Promise<ServedTool> {
  const tenant = readId(TenantId, 'tenant', options.tenant ?? DEFAULT_TENANT);
  // Checked before anything is connected.
  await checkTool(tool);
  const nc = await connect(natsOptions({ name: 'coxswain-tool', ...options }));
  try {
    const bus = { nc, js: jetstream(nc), inboxPrefix: options.inboxPrefix };
    const served = await serveToolOn(bus, tenant, tool as unknown as ServedToolDefinition, options);
    return {
      ...served,
      async stop() {
        await served.stop();
        await nc.close();
      },
    };
  } catch (error) {
    await nc.close();
    throw error;
  }
}

/** Serves a tool on a connection of the caller's. See {@link serveTool}. */
export async function serveToolOn(
  bus: CommandBus,
  tenant: TenantId,
  definition: ServedToolDefinition,
  options: ServeToolOptions = {},
): Promise<ServedTool> {
  const { nc } = bus;
  let tool = await checkTool(definition);
  const { name } = tool.announced;
  const instance = nuid.next();
  const problem = options.onProblem ?? (() => undefined);
  const calls = new ToolCalls(tool, {
    tenant,
    nowMs: () => performance.now(),
    bring: (ref, call, ending) => bring(bus, ref, call, ending, problem),
  });
  let state: ToolBeat['state'] = 'serving';

  const answerTo = (message: Msg, key: string) => (what: object) => {
    const said = { v: 1, key, instance, ...what } as ToolSaid;
    try {
      if (message.reply && isAnswerSubject(message.reply)) nc.publish(message.reply, JSON.stringify(said));
    } catch (error) {
      // The connection is gone: whoever asked will ask again.
      problem(`an answer was not sent: ${(error as Error).message}`);
    }
  };
  const hear = <T extends ToolAsked | ToolOrder>(
    schema: { safeParse(value: unknown): { readonly success: true; readonly data: T } | { readonly success: false } },
    take: (data: T, answer: (what: object) => void) => void,
  ) => ({
    callback: (error: Error | null, message: Msg) => {
      if (error) return problem(`${name} cannot be served: ${error.message}`);
      const data = questionIn(message, schema);
      if (data && isKeyOf(data.key, tenant, data.session_id)) take(data, answerTo(message, data.key));
      else problem(`what came on ${message.subject} is no question`);
    },
  });

  const questions = nc.subscribe(subjects.tool(tenant, name), {
    queue: TOOL_QUEUE_GROUP,
    ...hear(ToolAsked, (asked, answer) => calls.ask(asked, answer)),
  });
  const orders = [subjects.toolInstances(tenant, name), subjects.toolInstance(tenant, name, instance)].map((subject) =>
    nc.subscribe(
      subject,
      hear(ToolOrder, (order, answer) => calls.order(order, answer)),
    ),
  );
  const unlisten = async () => {
    await Promise.all([questions, ...orders].map((one: Subscription) => (one.isClosed() ? undefined : one.drain())));
  };

  const since = new Date().toISOString();
  const said = (): ToolBeat => ({ v: 1, state, since, digest: toolDigest(tool.announced), running: calls.running });
  const beat = () => {
    try {
      nc.publish(subjects.toolBeat(tenant, name, instance), JSON.stringify(said()));
    } catch {
      // The connection is gone: hosts hear nothing, which is what it means.
      return;
    }
  };
  const announceAgain = () =>
    announceTool(bus, tenant, tool, 'where_missing').catch((error: Error) =>
      problem(`${name} was not announced: ${error.message}`),
    );

  const announceFirst = async (one: CheckedTool) => {
    const former = await announceTool(bus, tenant, one);
    if (former !== null) problem(`${name} was announced as another version, ${former}: this one counts now`);
  };

  try {
    await nc.flush();
    await announceFirst(tool);
  } catch (error) {
    await unlisten();
    throw error;
  }
  beat();
  const beats = setInterval(beat, TOOL_LIVENESS.beatMs);
  // A server that was set up anew knows nothing of it.
  const status = nc.status();
  void (async () => {
    for await (const { type } of status) if (type === 'reconnect' && state === 'serving') void announceAgain();
  })();

  const stop = async () => {
    state = 'draining';
    beat();
    // What the server has sent already is taken, and runs.
    if (!questions.isClosed()) await questions.drain();
    // Without a connection for good no outcome can be brought: nothing is worth waiting for.
    const drainMs = nc.isClosed() ? 0 : (options.drainMs ?? DRAIN_MS);
    const late = setTimeout(() => calls.abortAll('the process that runs it ends'), drainMs);
    let giveUp: NodeJS.Timeout | undefined;
    const givenUp = new Promise<void>((resolve) => {
      giveUp = setTimeout(resolve, drainMs + ABORT_GRACE_MS);
    });
    await Promise.race([calls.drain(), givenUp]);
    clearTimeout(late);
    clearTimeout(giveUp);
    clearInterval(beats);
    state = 'gone';
    beat();
    await unlisten();
    if (!nc.isClosed()) await nc.flush();
  };
  let stopping: Promise<void> | null = null;
  return {
    name,
    instance,
    async update(next) {
      const checked = await checkTool(next);
      if (checked.announced.name !== name)
        throw new ToolDefinitionError(`it is named ${name}, and another name is another tool`);
      const before = tool;
      tool = checked;
      try {
        await announceTool(bus, tenant, tool);
      } catch (error) {
        tool = before;
        throw error;
      }
      calls.update(tool);
    },
    stop() {
      stopping ??= stop();
      return stopping;
    },
    async closed() {
      const why = await closedForGood(nc);
      return stopping ? null : why;
    },
  };
}

function questionIn<T>(
  message: Msg,
  schema: { safeParse(value: unknown): { readonly success: true; readonly data: T } | { readonly success: false } },
): T | null {
  try {
    const parsed = schema.safeParse(message.json());
    return parsed.success ? parsed.data : null;
  } catch {
    // No JSON.
    return null;
  }
}

/** Sends the outcome of a call that was taken up until the bus has it. The same id: twice sent is once taken. */
async function bring(
  bus: CommandBus,
  ref: SessionRef,
  call: TakenUpCall,
  ending: CallEnding,
  problem: (message: string) => void,
): Promise<void> {
  const id = `outcome-${call.idempotencyKey.split('.').at(-1)}-${call.epoch}`;
  let end = ending;
  for (let attempt = 0; attempt < BRINGS_MAX; attempt++) {
    try {
      await sendCallOutcome(bus, ref, call, end, { id });
      return;
    } catch (error) {
      const { message } = error as Error;
      if (bus.nc.isClosed() || (error instanceof CommandRejectedError && end !== ending)) break;
      // It does not fit into a command: the session is told that, in place of the result.
      if (error instanceof CommandRejectedError) end = failed(`the call ran; ${message}`, 'tool_result_too_large');
      else await new Promise((resolve) => setTimeout(resolve, Math.min(100 * 2 ** attempt, BRING_AGAIN_MAX_MS)));
    }
  }
  problem(`the outcome of ${call.idempotencyKey} could not be sent`);
}
