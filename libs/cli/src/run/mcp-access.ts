import { realpathSync } from 'node:fs';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { connectNats, listServedPersonas } from '@coxswain/adapter-nats';
import { type BodyInput, type BusClient, type Client, isNotPermitted } from '@coxswain/client';
import type { ListedPersona, SessionsAccess, StartWanted } from '@coxswain/mcp';
import { BOUNDS, cutText } from '@coxswain/protocol';
import { actorName } from '../connection/mod.ts';
import {
  callerFolder,
  choosePersona,
  FolderTrust,
  PERSONAS_FOLDER,
  type PersonaChoice,
  personaPaths,
  readCrew,
  readPersona,
  whatLiesAt,
} from '../folders/mod.ts';
import { type OpenBus, reachedAt } from '../instance/mod.ts';
import { CliError, EXIT, type Invocation } from '../line/mod.ts';
import { baseUrlOf, modelOf } from './start-body.ts';

/** The wait for an instance that is starting, in ms. Its server may have to be downloaded first. */
const BUS_TIMEOUT_MS = 60_000;

/** The access of `cox mcp` to sessions: the current bus, and settings from the folder and the flags. */
export class McpAccess implements SessionsAccess {
  #bus: OpenBus | null = null;
  readonly #waiting = new Set<(bus: OpenBus) => void>();
  readonly #folder: string;
  readonly #root: string;
  readonly #model: string | undefined;
  readonly #baseUrl: string | undefined;
  readonly #env: NodeJS.ProcessEnv;

  private constructor({ flags, env }: Invocation) {
    this.#folder = callerFolder(env);
    this.#root = realPath(resolve(this.#folder, flags.text('root') ?? '.'));
    this.#model = modelOf(flags.text('model') ?? (env.COX_MODEL || undefined), this.#folder);
    this.#baseUrl = baseUrlOf(flags.text('base-url'));
    this.#env = env;
  }

  /** @throws CliError with exit code 2 naming the invalid flag or variable. */
  static of(invocation: Invocation): McpAccess {
    actorName(invocation.env);
    return new McpAccess(invocation);
  }

  /** Sets the open bus. */
  setBus(bus: OpenBus): void {
    this.#bus = bus;
    for (const resolve of this.#waiting) resolve(bus);
    this.#waiting.clear();
  }

  /** Notes that no bus is open. */
  clearBus(): void {
    this.#bus = null;
  }

  async client(signal: AbortSignal): Promise<BusClient> {
    return (await this.#open(signal)).client;
  }

  actorOf(clientName: string | undefined): string | undefined {
    // COX_ACTOR names the actor. Otherwise it is the MCP client, because an agent is not the user of this machine.
    if (this.#env.COX_ACTOR?.trim()) return undefined;
    const name = (clientName ?? '').replace(/[\p{Cc}\p{Cf}]/gu, '').trim();
    return cutText(`mcp:${name === '' ? 'unnamed' : name}`, BOUNDS.actorMaxChars);
  }

  async startBody(wanted: StartWanted): Promise<BodyInput<'start'>> {
    const { persona: name, model: named, root, ...more } = wanted;
    const trust = new FolderTrust(this.#folder, this.#env, false);
    const persona = name === undefined ? undefined : await asToolErrors(() => choosePersona(name, this.#folder, trust));
    const crew = await asToolErrors(() => readCrew(persona, [], this.#folder, trust));
    const model = this.#modelOf(named) ?? this.#model;
    if (model === undefined && !namesModel(persona)) {
      const message =
        'model: is missing: give provider/name, such as anthropic/claude-sonnet-4-5, or start the server with --model';
      throw invalidInput('model', message);
    }
    return {
      ...more,
      root: this.#rootOf(root),
      ...(persona === undefined ? {} : { persona: typeof persona === 'string' ? persona : persona.input }),
      ...(crew.length === 0 ? {} : { personas: crew.map(({ input }) => input) }),
      ...(model === undefined ? {} : { model }),
      ...(this.#baseUrl === undefined ? {} : { base_url: this.#baseUrl }),
    };
  }

  async personas(client: Client): Promise<readonly ListedPersona[]> {
    const [inFolder, served] = await Promise.all([this.#personasInFolder(), this.#servedPersonas(client)]);
    // As at a start, a file takes precedence over a served persona with the same name.
    return [...inFolder, ...served.filter((one) => !inFolder.some(({ name }) => name === one.name))];
  }

  async #personasInFolder(): Promise<ListedPersona[]> {
    const folder = join(this.#folder, PERSONAS_FOLDER);
    if ((await whatLiesAt(folder)) !== 'folder of personas') return [];
    const { personaVersion } = await import('@coxswain/session');
    const listed: ListedPersona[] = [];
    for (const path of await personaPaths(folder)) {
      const read = await readPersona(path).catch(notValid);
      if (read === null) continue;
      const { name, description, modes } = read.persona;
      listed.push({
        name,
        description: description?.trim() ?? null,
        version: personaVersion(read.persona),
        modes: Object.keys(modes ?? {}),
        source: 'folder',
        available: true,
      });
    }
    return listed;
  }

  async #servedPersonas(client: Client): Promise<ListedPersona[]> {
    const nc = await connectNats({ ...reachedAt(await this.#open(AbortSignal.timeout(BUS_TIMEOUT_MS))), name: 'cox' });
    try {
      const served = await listServedPersonas(nc, client.tenant);
      return served.flatMap(({ name, announcement, pause, instances }) =>
        announcement === null
          ? []
          : [
              {
                name,
                description: announcement.definition.description?.trim() ?? null,
                version: announcement.version,
                modes: Object.keys(announcement.definition.modes ?? {}),
                source: 'served' as const,
                available: pause === null && instances.length > 0,
              },
            ],
      );
    } catch (error) {
      // A user who may not read the registry still gets the personas in files.
      if (isNotPermitted(error)) return [];
      throw error;
    } finally {
      await nc.close();
    }
  }

  /** A client may name scripts and journals only inside the root folder of the server. */
  #modelOf(wanted: string | undefined): string | undefined {
    const file = /^(?:scripted|replay)\/(.+)$/.exec(wanted ?? '')?.[1];
    if (file !== undefined && !this.#contains(realPath(resolve(this.#folder, file))))
      throw invalidInput(
        'model',
        `model: its file must be inside ${this.#root}, which the server was started with (--root)`,
      );
    return modelOf(wanted, this.#folder);
  }

  #contains(path: string): boolean {
    const way = relative(this.#root, path);
    return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
  }

  /**
   * Sessions work inside the root folder of the server, because the caller of its tools is not the user who started it.
   */
  #rootOf(wanted: string | undefined): string {
    if (wanted === undefined) return this.#root;
    const root = realPath(resolve(this.#root, wanted));
    if (this.#contains(root)) return root;
    const message = `root: must be inside ${this.#root}, which the server was started with (--root)`;
    throw invalidInput('root', message);
  }

  async #open(signal: AbortSignal): Promise<OpenBus> {
    if (this.#bus) return this.#bus;
    const late = AbortSignal.timeout(BUS_TIMEOUT_MS);
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        this.#waiting.delete(opened);
        reject(new CliError(EXIT.error, 'nats_unreachable', `no bus was open within ${BUS_TIMEOUT_MS} ms`));
      };
      const opened = (bus: OpenBus) => {
        for (const one of [signal, late]) one.removeEventListener('abort', giveUp);
        resolve(bus);
      };
      this.#waiting.add(opened);
      for (const one of [signal, late]) one.addEventListener('abort', giveUp, { once: true });
      if (signal.aborted) giveUp();
    });
  }
}

function namesModel(persona: PersonaChoice | undefined): boolean {
  return typeof persona === 'string' || persona?.persona.model !== undefined;
}

/** The host reports a folder that does not exist. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function notValid(error: unknown): null {
  if (error instanceof CliError) return null;
  throw error;
}

/** Converts errors of a file in the folder, which are no errors of the server's command line. */
async function asToolErrors<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof CliError && error.code === 'usage')
      throw new CliError(EXIT.error, 'persona_invalid', error.message);
    throw error;
  }
}

/** The error that names the invalid argument of a tool. */
function invalidInput(field: string, message: string): CliError {
  return Object.assign(new CliError(EXIT.usage, 'invalid_field', message), { field });
}
