/** Coxswain within a program: one call starts everything that sessions need, and returns one handle. */
import { resolve } from 'node:path';
import type {
  Approval,
  BusClient,
  Client,
  OutputSource,
  PersonaDefinition,
  Prompted,
  RunOptions,
  RunResult,
  SessionSettings,
  StartedOutput,
  StartedSession,
  TypedPersona,
  TypedResult,
} from '@coxswain/client';
import { checkedResult, checkRunArguments, outputSchemaOf } from '@coxswain/client/transport';
import { loadPersona } from '@coxswain/personas';
import { defaultStateDir } from '@coxswain/ports/discovery';
import { withCodes } from './coded-errors.ts';
import type { Instance } from './instance.ts';
import { type CoxswainOptions, checkOptions } from './options.ts';

/** A running Coxswain: its client, and the most used calls of the client. `await using` closes it automatically. */
export class Coxswain<C extends Client = Client> implements AsyncDisposable {
  /** The client, for calls that the handle does not have. On a bus it also serves tools and personas. */
  readonly client: C;
  /**
   * The address of the bus with its credentials, for `connect({ servers })` and for `NATS_URL` of other programs; null
   * in memory.
   */
  readonly url: string | null;
  /** Resolves with the reason when the instance fails permanently. Close it then. */
  readonly failed: Promise<Error>;
  readonly #instance: Instance;
  readonly #root: string;
  readonly #served = new Map<PersonaDefinition | string, Promise<string | PersonaDefinition>>();
  #closing: Promise<void> | null = null;

  /** Called by {@link startCoxswain}. */
  constructor(instance: Instance, root: string) {
    this.client = instance.client as C;
    this.url = instance.url;
    // A connection that this handle closed is not a failure.
    this.failed = instance.failed.then((error) => (this.#closing ? new Promise<never>(() => undefined) : error));
    this.#instance = instance;
    this.#root = root;
  }

  /** A handle of one session, whether or not it exists. */
  session(id: string): ReturnType<C['session']> {
    return this.client.session(id) as ReturnType<C['session']>;
  }

  /** Starts a session, as {@link Client.startSession} does. */
  startSession<Schema extends OutputSource = never, PersonaValue = unknown>(
    settings: SessionSettings<Schema, PersonaValue>,
    options?: Parameters<Client['startSession']>[1],
  ): Promise<TypedResult<StartedOutput<Schema, PersonaValue>> & StartedSession<ReturnType<C['session']>>> {
    // The type parameter names the class of the client's sessions.
    return this.client.startSession<Schema, PersonaValue>(settings, options) as Promise<never>;
  }

  /** Lists sessions, as {@link Client.sessions} does. */
  sessions(...given: Parameters<Client['sessions']>): ReturnType<Client['sessions']> {
    return this.client.sessions(...given);
  }

  /** Pending approvals of all sessions, as {@link Client.pendingApprovals} lists them. */
  pendingApprovals(): AsyncGenerator<Approval, void, undefined> {
    return this.client.pendingApprovals();
  }

  /**
   * Runs one prompt in a new session, and waits for the end of the run.
   * @param persona a name; a definition, whose code runs in this process; or a path of a file, a folder or a module,
   * which has a dot or a slash.
   * @throws the errors of `Client.run`, and of reading the persona.
   */
  async run<Schema extends OutputSource = never, PersonaValue = unknown>(
    persona: string | (PersonaDefinition & TypedPersona<PersonaValue>),
    prompt: Prompted,
    options?: RunOptions<Schema>,
  ): Promise<RunResult<StartedOutput<Schema, PersonaValue>>> {
    checkRunArguments(persona, prompt, options ?? {});
    const result = await this.client.run<Schema, PersonaValue>(await this.#named(persona), prompt, options);
    if (options?.output !== undefined) return result;
    // The bus knows only the JSON Schema of the persona's output. The persona's own schema checks the result here.
    return checkedResult(outputSchemaOf(persona), result as RunResult) as Promise<typeof result>;
  }

  /**
   * Registers a persona under its name. Its code runs in this process.
   * @param given a definition, or the path of a file, a folder or a module.
   * @throws CoxswainError with the code of the part that cannot be read.
   */
  async serve(given: PersonaDefinition | string): Promise<void> {
    await withCodes(async () => this.#instance.serve(await loadPersona(given, this.#root)));
  }

  /**
   * Stops everything that was started. On a bus, unfinished sessions continue at the next start. A second call waits
   * for the first.
   */
  close(): Promise<void> {
    this.#closing ??= withCodes(() => this.#instance.stop());
    return this.#closing;
  }

  /** Stops the instance, as {@link close} does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The persona of a start: a name, or a definition without code. A persona with code is registered once. */
  #named(persona: string | PersonaDefinition): Promise<string | PersonaDefinition> {
    if (typeof persona === 'string' && !isPath(persona)) return Promise.resolve(persona);
    const known = this.#served.get(persona);
    if (known) return known;
    const named = withCodes(async () => {
      const loaded = await loadPersona(persona, this.#root);
      const hasCode = Object.keys(loaded.handlersById).length > 0 || loaded.tools.length > 0;
      if (!hasCode) return loaded.definition;
      await this.#instance.serve(loaded);
      return loaded.persona.name;
    });
    this.#served.set(persona, named);
    named.catch(() => this.#served.delete(persona));
    return named;
  }
}

// Options that contradict their bus do not compile.
type InMemory = CoxswainOptions & {
  readonly bus: 'memory';
  readonly nkey?: undefined;
  readonly stateDir?: undefined;
  readonly policy?: undefined;
};
type Embedded = CoxswainOptions & { readonly bus?: 'embedded' | undefined; readonly nkey?: undefined };
type OnAddress = CoxswainOptions & { readonly bus: `${string}://${string}` };
type IfNotNamed<Bus extends string> = string extends Bus
  ? unknown
  : Bus extends 'memory' | 'embedded'
    ? never
    : unknown;

/** Whether a text is a path, not the name of a persona. */
export function isPath(text: string): boolean {
  return /[./\\]/.test(text);
}

/**
 * Starts Coxswain within this program. By default, sessions are durable: a NATS server of this program keeps them in
 * the state directory, and unfinished sessions continue at the next start. With `bus: 'memory'` they end with the
 * program.
 * @throws CoxswainError only: InvalidOptionError naming the option; `nats_server_not_found` and `state_dir_in_use` for
 * `embedded`; `nats_unreachable` for an address; the codes of personas, hooks and tools that cannot be read.
 */
export function startCoxswain(options: InMemory): Promise<Coxswain>;
export function startCoxswain(options?: Embedded | OnAddress): Promise<Coxswain<BusClient>>;
export function startCoxswain<Bus extends string>(
  options: CoxswainOptions & { readonly bus: Bus } & IfNotNamed<Bus>,
): Promise<Coxswain>;
// For options of the general type, whose values are known only at run time.
export function startCoxswain<Options extends CoxswainOptions>(
  options: CoxswainOptions extends Options ? Options : never,
): Promise<Coxswain>;
export async function startCoxswain(options: CoxswainOptions = {}): Promise<Coxswain> {
  checkOptions(options);
  const env = options.env ?? process.env;
  const root = resolve(options.root ?? '.');
  const instance = await withCodes(() => start(options, root, env));
  const coxswain = new Coxswain(instance, root);
  try {
    for (const persona of options.personas ?? []) await coxswain.serve(persona);
  } catch (error) {
    await coxswain.close();
    throw error;
  }
  return coxswain;
}

async function start(options: CoxswainOptions, root: string, env: NodeJS.ProcessEnv): Promise<Instance> {
  if (options.bus === 'memory') {
    const { startInMemory } = await import('./memory-instance.ts');
    return startInMemory(options, root, env);
  }
  const { startOnBus } = await import('./bus-instance.ts');
  const named = options.stateDir ?? (env.COX_STATE_DIR || undefined);
  return startOnBus(options, { stateDir: named === undefined ? defaultStateDir(env) : resolve(named), root, env });
}
