/**
 * A bus of a test's own: a real nats-server in a folder of its own, with a session host in this process. For what goes over a
 * bus: personas, tools and hooks that are served, and programs of one's own.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createHookRegistry, gatherHooks, type HookSource, loadHooks } from '@coxswain/adapter-hooks';
import { createModels } from '@coxswain/adapter-models';
import {
  connectionTo,
  connectNats,
  endOnce,
  findServer,
  removeHookService,
  reportTo,
  serveHooks,
  startServer,
} from '@coxswain/adapter-nats';
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

/** How a bus is started. */
export interface StartBusOptions {
  /** Tools of the host, in place of the built-in ones of the same names. What is served on the bus is there besides. */
  readonly tools?: SceneTools | undefined;
  /** Hooks in the host's own process. */
  readonly hooks?: HookSource | readonly HookSource[] | undefined;
  /** The root of sessions that name none. Default: a folder of the bus. */
  readonly root?: string | undefined;
  /** How long anything is waited for, milliseconds. Default 60,000. */
  readonly patienceMs?: number | undefined;
  /** Environment variables of hosts and models. Default `process.env`; `NATS_URL` is ignored. */
  readonly env?: NodeJS.ProcessEnv | undefined;
}

/** What a session is started with; the model may be a script. */
export type RunOptions = Omit<SessionSettings, 'prompt' | 'messages' | 'model'> & {
  readonly model?: SessionSettings['model'] | Script | readonly ScriptedAnswer[];
};

/** A bus that is up. Stop it when the tests have ended; `await using` does that by itself. */
export interface TestBus extends AsyncDisposable {
  /** For `connect({ servers })`, `NATS_URL` and other programs: with its token, and good for this machine alone. */
  readonly url: string;
  /** Its folder, which goes with it. */
  readonly folder: string;
  /** A client of the bus. */
  readonly client: BusClient;
  /** Writes a script. @returns the model's name, for `model` of a persona or of a session. */
  script(script: Script | readonly ScriptedAnswer[]): Promise<string>;
  /** Starts a session. */
  start(prompt: string, options?: RunOptions): Promise<BusSession>;
  /** Starts a session and waits for the end of its run, as {@link ended} does. */
  run(prompt: string, options?: RunOptions): Promise<Journal>;
  /** Waits for the end of a run, its newest by default. @throws ExpectationError with the journal where it does not end in time. */
  ended(session: BusSession, options?: { readonly after?: number }): Promise<Journal>;
  /** Waits until these events have happened in this order. @throws ExpectationError with the journal where they do not in time. */
  until(session: BusSession, ...patterns: readonly EventPattern[]): Promise<Journal>;
  /** A session's journal as it is stored now. */
  journal(session: BusSession): Promise<Journal>;
  /** Serves a persona, and resolves when the host knows of it. */
  servePersona(
    persona: ScenePersona,
    options?: Partial<ServePersonaOptions> & { readonly model?: Script | readonly ScriptedAnswer[] },
  ): Promise<ServedPersonaInstance>;
  /** Serves a tool, and resolves when the host knows of it. */
  serveTool<const Schema extends InputSchema | JsonObject>(tool: Tool<Schema>): Promise<ServedTool>;
  /** Serves hooks, declared or from a file, and resolves when the host knows of them. @param service default `test`. */
  serveHooks(hooks: HookDefinitions | string, service?: string): Promise<TestHooks>;
  /** Ends all that was served, the host and the server, and takes the folder away. */
  stop(): Promise<void>;
}

/** Hooks that a test serves. After `stop` they stay registered and do not respond, like those of a crashed service. */
export interface TestHooks {
  /** This instance of the service. */
  readonly instance: string;
  /** Serves other handlers from now on. @throws NatsUnavailableError; then the ones before are served. */
  update(handlers: HookHandlers): Promise<void>;
  /** Accepts no more questions, and resolves when the accepted ones are answered. */
  stop(): Promise<void>;
  /** Ends the service and takes its registrations back: sessions ask for them no more. */
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
 * Starts a bus. The server is found as `cox` finds it: `COX_NATS_SERVER`, the PATH, the npm package, or fetched once.
 * @throws NatsServerNotFoundError where there is none and none can be fetched: a test may be skipped for it.
 * @throws SceneError for an unknown key; what else finding and starting a server throws, which says what to do.
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
    // Those that were begun last end first, and one that fails keeps no other from ending.
    const failed: unknown[] = [];
    for (const close of closing.reverse()) await close().catch((error: unknown) => failed.push(error));
    if (failed.length > 0) throw failed[0];
  });
  try {
    // What a test leaves need not outlive the machine.
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
    const { personas } = this.#parts.service.heard;
    await this.#known(`the persona ${served.name}`, () => personas.isServed(tenant, served.name, served.version));
    return served;
  }

  async serveTool<const Schema extends InputSchema | JsonObject>(tool: Tool<Schema>): Promise<ServedTool> {
    const served = await this.client.serveTool(tool);
    this.#parts.closing.push(() => served.stop());
    await this.#known(`the tool ${tool.name}`, () => this.#parts.service.heard.tools(tenant).includes(tool.name));
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
      this.#parts.service.heard.hooks(tenant).filter((one) => ids.has(one.id) && one.unavailable !== true).length;
    await this.#known(`the hooks of ${service}`, () => known() === handlers.table().length);
    return {
      ...served,
      remove: async () => {
        await served.stop();
        await removeHookService(this.#parts.nc, tenant, service);
        await this.#known(`the end of the hooks of ${service}`, () =>
          this.#parts.service.heard.hooks(tenant).every(({ id }) => !ids.has(id)),
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

  async #known(what: string, isKnown: () => boolean): Promise<void> {
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
