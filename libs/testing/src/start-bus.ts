/**
 * A separate bus for a test: a nats-server with its own folder, and a session host in this process. For tests of served
 * personas, tools and hooks, and of programs that use a bus.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findServer, reportTo, startServer } from '@coxswain/adapter-embedded-server';
import { createHookRegistry, gatherHooks, type HookSource, loadHooks } from '@coxswain/adapter-hooks';
import { createModels } from '@coxswain/adapter-models';
import { connectionTo, connectNats, endOnce, removeAnnouncement, serveHooks } from '@coxswain/adapter-nats';
import {
  type BusClient,
  type BusSession,
  connect,
  type InputSchema,
  type PersonaDefinition,
  type ServedPersonaInstance,
  type ServedTool,
  type ServePersonaOptions,
  type SessionSettings,
  type Tool,
} from '@coxswain/client';
import { storedRecords } from '@coxswain/client/transport';
import type { HookHandlers } from '@coxswain/ports';
import { DEFAULT_TENANT, type HookDefinitions, hasEnded, type JsonObject, TenantId } from '@coxswain/protocol';
import { type SessionsService, startSessionsService } from '@coxswain/sessions';
import { type EventPattern, expectInOrder } from './expect-events.ts';
import { type Journal, readJournalOf } from './journal.ts';
import { checkKeys } from './known-keys.ts';
import { readScenePersona, type ScenePersona } from './scene-persona.ts';
import { type SceneTools, sceneTools } from './scene-tools.ts';
import { type Script, type ScriptedAnswer, scriptText } from './scripted-answers.ts';
import { QUIET } from './stage.ts';
import { ExpectationError } from './testing-errors.ts';

/** Options of a test bus. */
export interface StartBusOptions {
  /** Tools of the host. They replace built-in tools of the same name. Tools on the bus are available as well. */
  readonly tools?: SceneTools | undefined;
  /** Hooks that run in the host's process. */
  readonly hooks?: HookSource | readonly HookSource[] | undefined;
  /** The root of sessions without one. Default: the folder of the bus. */
  readonly root?: string | undefined;
  /** The time limit of each wait, in milliseconds. Default 60,000. */
  readonly patienceMs?: number | undefined;
  /** Environment variables of the host and of models. Default `process.env`; `NATS_URL` is ignored. */
  readonly env?: NodeJS.ProcessEnv | undefined;
}

/** Settings of a session. The model may be a script. */
export type RunOptions = Omit<SessionSettings, 'prompt' | 'messages' | 'model'> & {
  readonly model?: SessionSettings['model'] | Script | readonly ScriptedAnswer[];
};

/** A running bus. Call `stop` after the tests, or use `await using`. */
export interface TestBus extends AsyncDisposable {
  /**
   * The address for `connect({ servers })`, `NATS_URL` and other programs. It contains the token, and works on this
   * machine only.
   */
  readonly url: string;
  /** The folder of the bus. `stop` removes it. */
  readonly folder: string;
  /** A client of the bus. */
  readonly client: BusClient;
  /** Writes a script to a file. @returns the model's name, for `model` of a persona or of a session. */
  script(script: Script | readonly ScriptedAnswer[]): Promise<string>;
  /** Starts a session. */
  start(prompt: string, options?: RunOptions): Promise<BusSession>;
  /** Starts a session and waits for the end of its run, as {@link ended} does. */
  run(prompt: string, options?: RunOptions): Promise<Journal>;
  /**
   * Waits for the end of a run, by default of the newest. @throws ExpectationError with the journal if it does not end
   * in time.
   */
  ended(session: BusSession, options?: { readonly after?: number }): Promise<Journal>;
  /**
   * Waits until these events have happened in this order. @throws ExpectationError with the journal if they have not
   * happened in time, or when the session has ended.
   */
  until(session: BusSession, ...patterns: readonly EventPattern[]): Promise<Journal>;
  /** The current stored journal of a session. */
  journal(session: BusSession): Promise<Journal>;
  /** Serves a persona. Resolves once the host knows it. */
  servePersona(
    persona: ScenePersona,
    options?: Partial<ServePersonaOptions> & { readonly model?: Script | readonly ScriptedAnswer[] },
  ): Promise<ServedPersonaInstance>;
  /** Serves a tool. Resolves once the host knows it. */
  serveTool<const Schema extends InputSchema | JsonObject>(tool: Tool<Schema>): Promise<ServedTool>;
  /**
   * Serves hooks from declarations or from a file. Resolves once the host knows them. @param service default `test`.
   */
  serveHooks(hooks: HookDefinitions | string, service?: string): Promise<TestHooks>;
  /** Stops all served personas, tools and hooks, the host and the server, and removes the folder. */
  stop(): Promise<void>;
}

/**
 * Hooks that a test serves. After `stop` their registrations remain without an instance, as after a crash of the
 * service.
 */
export interface TestHooks {
  /** The id of this instance of the service. */
  readonly instance: string;
  /** Replaces the served handlers. @throws NatsUnavailableError; the previous handlers stay in use. */
  update(handlers: HookHandlers): Promise<void>;
  /** Accepts no more questions. Resolves once the accepted ones are answered. */
  stop(): Promise<void>;
  /** Stops the service and removes its registrations, so that sessions no longer consult them. */
  remove(): Promise<void>;
}

const LOOK_AGAIN_MS = 20;

const SERVE_PERSONA_KEYS: readonly (keyof ServePersonaOptions)[] = [
  'models',
  'tools',
  'foreignTools',
  'handlers',
  'stepsAtOnce',
  'drainMs',
  'observer',
  'onProblem',
];

/**
 * Starts a bus. It looks for the server as `cox` does: `COX_NATS_SERVER`, the PATH, the npm package, then a download
 * that is cached.
 * @throws NatsServerNotFoundError if no server is found and none can be downloaded. A test may be skipped in this case.
 * @throws SceneError for an unknown key; other errors of finding and starting a server, which say what to do.
 */
export async function startBus(options: StartBusOptions = {}): Promise<TestBus> {
  checkKeys('startBus({ … })', options, ['tools', 'hooks', 'root', 'patienceMs', 'env']);
  const { NATS_URL: _other, ...env } = options.env ?? process.env;
  const found = await findServer({ env, report: reportTo(process.stderr) });
  if (found.kind !== 'binary') throw new Error('no binary although NATS_URL is not set');
  const folder = await mkdtemp(join(tmpdir(), 'cox-test-'));
  const stateDir = join(folder, 'state');
  const closing: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  const stop = endOnce(async () => {
    // In reverse order of their start. A failure does not keep the others from ending.
    const failed: unknown[] = [];
    for (const close of closing.reverse()) await close().catch((error: unknown) => failed.push(error));
    if (failed.length > 0) throw failed[0];
  });
  try {
    // The data of a test need not survive a power failure.
    const server = await startServer({ binary: found.path, stateDir, syncAlways: false });
    closing.push(() => server.stop());
    const nats = { servers: server.url, token: server.token };
    const defaultRoot = resolve(options.root ?? folder);
    const service = await startSessionsService({
      nats,
      stateDir,
      env,
      defaultRoot,
      trustsBus: true,
      hooks: await gatherHooks(options.hooks, 'test', QUIET),
      ...(options.tools === undefined
        ? {}
        : { tools: sceneTools({ tools: options.tools, root: defaultRoot, withCrew: true }) }),
    });
    closing.push(() => service.stop());
    const client = await connect(nats);
    closing.push(() => client.close());
    const nc = await connectNats({ ...connectionTo(nats), name: 'cox-testing' });
    closing.push(() => nc.close());
    const url = server.url.replace('nats://', `nats://${server.token}@`);
    return new Bus({ url, folder, client, service, nc, closing, stop, patienceMs: options.patienceMs ?? 60_000 });
  } catch (error) {
    await stop();
    throw error;
  }
}

interface BusParts {
  readonly url: string;
  readonly folder: string;
  readonly client: BusClient;
  readonly service: SessionsService;
  readonly nc: Awaited<ReturnType<typeof connectNats>>;
  readonly closing: (() => Promise<unknown>)[];
  readonly stop: () => Promise<void>;
  readonly patienceMs: number;
}

const tenant = TenantId.parse(DEFAULT_TENANT);

class Bus implements TestBus {
  readonly url: string;
  readonly folder: string;
  readonly client: BusClient;
  readonly #parts: BusParts;
  #scripts = 0;

  constructor(parts: BusParts) {
    this.url = parts.url;
    this.folder = parts.folder;
    this.client = parts.client;
    this.#parts = parts;
  }

  async script(script: Script | readonly ScriptedAnswer[]): Promise<string> {
    const path = join(this.folder, `script-${++this.#scripts}.yaml`);
    await writeFile(path, scriptText(script));
    const name = `scripted/${path}`;
    const problem = await createModels({ env: {} }).check({ name });
    if (problem) throw new Error(problem.message);
    return name;
  }

  async start(prompt: string, { model, ...options }: RunOptions = {}): Promise<BusSession> {
    const named = isScript(model) ? await this.script(model) : model;
    return this.client.startSession(
      { ...options, prompt, ...(named === undefined ? {} : { model: named }) },
      { wait: 'accepted' },
    );
  }

  async run(prompt: string, options: RunOptions = {}): Promise<Journal> {
    return this.ended(await this.start(prompt, options));
  }

  async ended(session: BusSession, options: { readonly after?: number } = {}): Promise<Journal> {
    checkKeys('ended(…, { … })', options, ['after']);
    const { after } = options;
    const signal = AbortSignal.timeout(this.#parts.patienceMs);
    await session.result({ signal, ...(after === undefined ? {} : { after }) }).catch(async (error: unknown) => {
      if (!signal.aborted) throw error;
      const journal = await this.journal(session);
      const said = `the run of ${session.id} has not ended within ${this.#parts.patienceMs} ms; it is in ${journal.state}`;
      throw new ExpectationError(`${said}\n${journal}`, 'agent_end', journal.state);
    });
    return this.journal(session);
  }

  async until(session: BusSession, ...patterns: readonly EventPattern[]): Promise<Journal> {
    const untilMs = performance.now() + this.#parts.patienceMs;
    for (;;) {
      const journal = await this.journal(session);
      try {
        expectInOrder(journal.events, patterns);
        return journal;
      } catch (error) {
        const newest = journal.records.at(-1);
        const isOver = newest !== undefined && hasEnded(newest.state);
        if (!(error instanceof ExpectationError) || isOver || performance.now() > untilMs) throw error;
      }
      await sleep(LOOK_AGAIN_MS);
    }
  }

  async journal(session: BusSession): Promise<Journal> {
    const bytes: Uint8Array[] = [];
    for await (const stored of storedRecords(session.journal())) bytes.push(stored.bytes);
    return readJournalOf(bytes, { get: (sha256) => this.client.blob(sha256) });
  }

  async servePersona(
    persona: ScenePersona,
    { model, ...options }: Partial<ServePersonaOptions> & { readonly model?: Script | readonly ScriptedAnswer[] } = {},
  ): Promise<ServedPersonaInstance> {
    checkKeys('servePersona(…, { … })', options, SERVE_PERSONA_KEYS);
    const read = await readScenePersona(persona);
    const named = model === undefined ? {} : { model: await this.script(model) };
    const definition: PersonaDefinition = { ...read.definition, ...named };
    const served = await this.client.servePersona(definition, {
      models: createModels({ env: {} }),
      tools: read.tools,
      handlers: read.handlers,
      ...options,
    });
    this.#parts.closing.push(() => served.stop());
    const { personas } = this.#parts.service.registered;
    await this.#waitUntilKnown(`the persona ${served.name}`, () =>
      personas.isServed(tenant, served.name, served.version),
    );
    return served;
  }

  async serveTool<const Schema extends InputSchema | JsonObject>(tool: Tool<Schema>): Promise<ServedTool> {
    const served = await this.client.serveTool(tool);
    this.#parts.closing.push(() => served.stop());
    await this.#waitUntilKnown(`the tool ${tool.name}`, () =>
      this.#parts.service.registered.tools(tenant).includes(tool.name),
    );
    return served;
  }

  async serveHooks(hooks: HookDefinitions | string, service = 'test'): Promise<TestHooks> {
    const handlers =
      typeof hooks === 'string' ? (await loadHooks(hooks, service)).hooks : createHookRegistry({ name: service });
    if (typeof hooks !== 'string') handlers.registerAll(hooks);
    const served = await serveHooks(this.#parts.nc, QUIET, { tenant, service, handlers });
    this.#parts.closing.push(() => served.stop());
    const ids = new Set(handlers.table().map(({ id }) => id));
    const known = () =>
      this.#parts.service.registered.hooks(tenant).filter((one) => ids.has(one.id) && one.unavailable !== true).length;
    await this.#waitUntilKnown(`the hooks of ${service}`, () => known() === handlers.table().length);
    return {
      ...served,
      remove: async () => {
        await served.stop();
        await removeAnnouncement(this.#parts.nc, { kind: 'hooks', tenant, name: service });
        await this.#waitUntilKnown(`the end of the hooks of ${service}`, () =>
          this.#parts.service.registered.hooks(tenant).every(({ id }) => !ids.has(id)),
        );
      },
    };
  }

  stop(): Promise<void> {
    return this.#parts.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #waitUntilKnown(what: string, isKnown: () => boolean): Promise<void> {
    const untilMs = performance.now() + this.#parts.patienceMs;
    while (!isKnown()) {
      if (performance.now() > untilMs)
        throw new Error(`the host does not know ${what} after ${this.#parts.patienceMs} ms`);
      await sleep(LOOK_AGAIN_MS);
    }
  }
}

function isScript(model: RunOptions['model']): model is Script | readonly ScriptedAnswer[] {
  return Array.isArray(model) || (typeof model === 'object' && model !== null && 'turns' in model);
}
