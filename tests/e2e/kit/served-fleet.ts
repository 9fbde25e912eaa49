/** Processes that serve every kind of work, and a host's requests to them. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  connectionTo,
  connectNats,
  createNatsHooks,
  createNatsPersonas,
  createNatsTools,
  ensureStreams,
} from '@coxswain/adapter-nats';
import type { HookReply, HookRequest, ToolCall, ToolSource } from '@coxswain/ports';
import { DEFAULT_TENANT, type HookRegistration, readPersonaHooks, SessionId, sessionRef } from '@coxswain/protocol';
import {
  type Ending,
  endingOfCall,
  endingOfQuestion,
  PERSONA_VERSION,
  runServedStep,
} from '../../contracts/served-endings.ts';
import type { TestBus } from './bus.ts';
import { Child, SERVED_MAIN } from './child.ts';
import { scratchFolder } from './scratch.ts';
import { until } from './until.ts';

/** One piece of work, in a session of its own. */
export interface Work {
  /** Unique in the test, and a valid id of a session. */
  readonly key: string;
  readonly takesMs: number;
}

/** A start of work in a process. */
export interface WorkStart {
  readonly key: string;
  readonly pid: number;
  /** Milliseconds since 1970. */
  readonly atMs: number;
  /** When the process accepted it: its start may follow a suspension. Infinity for a question, which starts at once. */
  readonly acceptedMs: number;
}

/** One kind of work of a fleet. */
export interface FleetKind {
  readonly title: string;
  readonly isRepeatable: boolean;
  /** Whether an instance starts it only at the order of the host. */
  readonly isHeld: boolean;
  /** Whether pieces of the answer are streamed: the other instances are aborted at its end. */
  readonly isStreamed: boolean;
  ask(work: Work): Promise<Ending>;
}

/** The ports of a session host. */
export type ServedPorts = Awaited<ReturnType<typeof openServedPorts>>;

/** Opens the ports of served work, and creates the streams that they need. */
export async function openServedPorts(bus: TestBus) {
  const nc = await connectNats(connectionTo({ servers: bus.natsUrl }));
  await ensureStreams(nc);
  const silent = () => undefined;
  const log = { debug: silent, info: silent, warn: silent, error: silent };
  const [tools, personas, hooks] = [
    await createNatsTools(nc, log),
    await createNatsPersonas(nc, log),
    await createNatsHooks(nc, log),
  ];
  return {
    tools,
    personas,
    hooks,
    async close() {
      await Promise.all([tools.stop(), personas.stop(), hooks.stop()]);
      await nc.close();
    },
  };
}

/** Instances of one service, each a process that serves every kind of work under one name. */
export class ServedFleet {
  readonly name: string;
  readonly #bus: TestBus;
  readonly #log: string;
  #instances: Child[] = [];

  private constructor(bus: TestBus, name: string, log: string) {
    this.name = name;
    this.#bus = bus;
    this.#log = log;
  }

  /** Starts the processes. Resolves when the host knows them. */
  static async start(bus: TestBus, ports: ServedPorts, name: string, size: number): Promise<ServedFleet> {
    const log = join(await scratchFolder('served'), 'log');
    await writeFile(log, '');
    const fleet = new ServedFleet(bus, name, log);
    await Promise.all(Array.from({ length: size }, () => fleet.add()));
    await until('the host knows the fleet', () => kindsOf(fleet, ports) !== null);
    return fleet;
  }

  get instances(): readonly Child[] {
    return this.#instances;
  }

  /** Starts one more process. */
  async add(): Promise<void> {
    const child = new Child(SERVED_MAIN, [this.name, this.#log], { env: { NATS_URL: this.#bus.natsUrl } });
    await child.says('ready');
    this.#instances.push(child);
  }

  /** Kills a process. */
  async kill(child: Child): Promise<void> {
    this.#instances = this.#instances.filter((one) => one !== child);
    await child.kill();
  }

  /** All starts of work so far. */
  async starts(): Promise<readonly WorkStart[]> {
    const lines = (await readFile(this.#log, 'utf8')).split('\n').filter(Boolean);
    const acceptedMs = new Map<string, number>();
    const starts: WorkStart[] = [];
    for (const line of lines) {
      const [what, key = '', pid = '', atMs] = line.split(' ');
      const id = `${key} ${pid}`;
      if (what === 'accepted') acceptedMs.set(id, Number(atMs));
      else
        starts.push({
          key,
          pid: Number(pid),
          atMs: Number(atMs),
          acceptedMs: acceptedMs.get(id) ?? Number.POSITIVE_INFINITY,
        });
    }
    return starts;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#instances.map((child) => child.kill()));
  }
}

/** The kinds of work that a fleet serves. @returns null while the host does not know all of them. */
export function kindsOf({ name }: ServedFleet, { tools, personas, hooks }: ServedPorts): readonly FleetKind[] | null {
  const persona = personas.personas.find(DEFAULT_TENANT, name);
  const policy = hooks.table(DEFAULT_TENANT).find(({ id }) => id === `${name}-hook`);
  if (!persona || !policy || !tools.names(DEFAULT_TENANT).includes(`${name}_once`)) return null;
  const own = readPersonaHooks(persona.definition, persona.version);
  const ownHook = 'hooks' in own ? own.hooks[0]?.registration : undefined;
  if (!ownHook) throw new Error('the persona has no hook');

  const call = (source: ToolSource, tool: string, isIdempotent: boolean) => async (work: Work) => {
    const ref = refOf(work);
    const served = { name, version: PERSONA_VERSION };
    const set = await source.open({ ref, served } as Parameters<ToolSource['open']>[0], never());
    if (!('call' in set)) throw new Error(`no tools: ${set.message}`);
    const one: ToolCall = {
      idempotencyKey: `${ref.tenant}.${ref.sessionId}.3-0`,
      ref,
      callId: 'c1',
      tool,
      args: { ...work },
      epoch: 1,
      isIdempotent,
      onProgress: () => undefined,
      onFeedback: () => undefined,
    };
    return endingOfCall(await set.call(one, never()));
  };
  const question =
    (ask: (request: HookRequest, signal: AbortSignal) => Promise<HookReply>, registration: HookRegistration) =>
    async (work: Work) => {
      const about = { ref: refOf(work), effectId: '3-0', registration, payload: { ...work } };
      return endingOfQuestion(await ask({ ...about, transcript: () => [], onFeedback: () => undefined }, never()));
    };
  const [again, once] = [
    { isRepeatable: true, isHeld: true, isStreamed: false },
    { isRepeatable: false, isHeld: true, isStreamed: false },
  ];
  const arriving = { isRepeatable: true, isHeld: false, isStreamed: false };
  return [
    { title: 'idempotent tool', ...again, ask: call(tools, `${name}_again`, true) },
    { title: 'tool', ...once, ask: call(tools, `${name}_once`, false) },
    {
      title: 'step',
      ...arriving,
      isStreamed: true,
      ask: (work) =>
        runServedStep(
          personas.personas,
          name,
          { ref: refOf(work), effectId: '3-0', system: JSON.stringify(work) },
          never(),
        ),
    },
    { title: 'hook', ...arriving, ask: question((...asked) => hooks.ask(...asked), policy) },
    { title: 'persona hook', ...arriving, ask: question((...asked) => personas.personas.askHook(...asked), ownHook) },
    { title: 'idempotent persona tool', ...again, ask: call(personas.tools, 'again', true) },
    { title: 'persona tool', ...once, ask: call(personas.tools, 'once', false) },
  ];
}

const refOf = ({ key }: Work) => sessionRef(SessionId.parse(key), DEFAULT_TENANT);
/** No session cancels. */
const never = () => new AbortController().signal;
