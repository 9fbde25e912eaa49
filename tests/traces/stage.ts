/**
 * The stage on which traces are recorded: real hosts, scripted models and code tools on a bus in memory, with a clock
 * whose hands only the scenario moves, and ids that count. The same scenario gives the same bytes on every machine.
 */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import {
  createMemoryBus,
  createMemoryPersonas,
  createMemoryRememberedRules,
  type MemoryPersonaInstance,
} from '@coxswain/adapter-memory';
import { createModels } from '@coxswain/adapter-models';
import type {
  ApprovalNotices,
  Clock,
  HookReply,
  HookRequest,
  Hooks,
  Journal,
  Log,
  Models,
  RememberedRules,
  ToolSource,
  ToolsetSpec,
} from '@coxswain/ports';
import {
  HEADERS,
  HookRegistration,
  type HookTable,
  type JsonObject,
  Persona,
  sessionRef,
  subjects,
} from '@coxswain/protocol';
import { createSessionHost, type SessionHost } from '@coxswain/session';
import { noticed, PLACID } from '../../libs/session/test/noticed-line.ts';
import { VirtualTime } from '../../libs/session/test/virtual-time.ts';
import { deckTools } from './deck-tools.ts';
import type { Scenario, TracedHook } from './scenario.ts';
import type { StageBus } from './stage-bus.ts';

/** Calls of these tools wait for a person, every other may run. */
export const asking = (...tools: readonly string[]) => ({
  rules: tools.map((tool) => ({ tool, action: 'ask' })),
  default: 'allow',
});

/** The script of every scenario, in a folder of its own. Short, as every answer names it. */
export const SCRIPT = 'deck.yaml';
/** What starts say, where a scenario does not say otherwise: a persona without a prompt, as every trace holds it thrice. */
const START = {
  prompt: 'Take her out.',
  persona: { name: 'mate' },
  model: `scripted/${SCRIPT}`,
  permissions: { default: 'allow' },
};

const QUIET: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** See the top of the file. */
export class Stage {
  readonly time: VirtualTime;
  readonly bus: StageBus;
  /** Personas that are served elsewhere, or paused. */
  readonly personas = createMemoryPersonas();
  /** Whose sessions play here. */
  readonly tenant = sessionRef('s1').tenant;
  readonly #clock: Clock;
  readonly #rules: RememberedRules | null;
  #notices = 0;
  readonly #scenario: Scenario;
  readonly #hooks: TracedHooks;
  readonly #models: Models;
  readonly #tools: ToolSource;
  readonly #heedsInjections: boolean;
  #onFeedback: ToolsetSpec['onFeedback'];
  readonly #sent = new Map<string, number>();
  #ids = 0;
  #host: SessionHost | null = null;
  #appendsLeft = Number.POSITIVE_INFINITY;
  readonly #deleted = new Set<string>();

  /**
   * @param scriptFolder where the scenario's script lies, as {@link SCRIPT}.
   * @param heedsInjections false for a control: what {@link inject} is given never reaches the session.
   * @param makeBus the bus that it stands on; one in memory by default.
   */
  constructor(
    scenario: Scenario,
    scriptFolder: string,
    heedsInjections = true,
    makeBus: (clock: Clock) => StageBus = createMemoryBus,
  ) {
    this.#scenario = scenario;
    this.#rules = scenario.remembers ? createMemoryRememberedRules() : null;
    this.#heedsInjections = heedsInjections;
    // The time of the stage stands still until its bus has done what was asked of it.
    this.time = new VirtualTime(() => this.#drained());
    this.#clock = this.time.clock();
    this.bus = makeBus(this.#clock);
    this.#hooks = new TracedHooks(scenario.hooks ?? [], this.#clock);
    // Each script is read once, before its scene begins: another look at the disk would take real time.
    const readScript = (name: string) => readFile(resolve(scriptFolder, name), 'utf8');
    this.#models = createModels({ env: {}, clock: this.#clock, baseFolder: scriptFolder, readScript });
    this.#tools = scenario.realTools?.source ?? deckTools(scenario.tools ?? [], this.#clock, heedsInjections);
  }

  /** Reads the script, so that the model never waits for the disk. @throws where the script is not valid. */
  async readScript(name = START.model): Promise<void> {
    const problem = await this.#models.check({ name });
    if (problem) throw new Error(problem.message);
  }

  async #drained(): Promise<void> {
    for (;;) {
      await (this.bus.drained?.() ?? oneTurn());
      const work = this.#scenario.realTools?.underWay();
      if (!work) return;
      await work;
    }
  }

  #noticed(): Awaited<ReturnType<ApprovalNotices['deliver']>> {
    const status = this.#scenario.notices?.[this.#notices++] ?? 'delivered';
    if (status === 'delivered') return { status, attempts: 1 };
    return { status, attempts: 8, error: { code: 'notice_failed', message: 'it answered 500' } };
  }

  /** Starts a host, and takes up what is open. */
  async host(name = 'deck'): Promise<void> {
    this.#host = createSessionHost(
      {
        journal: this.#journal(),
        inbox: await this.bus.createInbox(),
        snapshots: this.bus.snapshots,
        timers: this.bus.timers,
        blobs: this.bus.blobs,
        hostChannel: noticed(this.bus.createHostChannel()),
        active: this.bus.active,
        clock: this.#clock,
        ids: { next: () => String(++this.#ids) },
        hooks: this.#hooks,
        log: QUIET,
        models: this.#scenario.trouble?.modelRejects ? rejecting(this.#models) : this.#models,
        publisher: this.bus.publisher,
        sender: this.bus.sender,
        personas: { find: async () => null, names: async () => [] },
        served: this.personas,
        tools: this.#toolSource(),
        // Nothing is read or written there.
        defaultRoot: '/srv/demo',
        ...(this.#rules ? { rememberedRules: this.#rules } : {}),
        ...(this.#scenario.notices ? { approvalNotices: { deliver: async () => this.#noticed() } } : {}),
        stopPredicates: this.#scenario.stopPredicates,
        prices: this.#scenario.price ? [{ model: 'scripted/*', ...this.#scenario.price }] : [],
      },
      { name, liveness: PLACID },
    );
    const started = this.#host.start();
    await this.time.settle();
    await started;
  }

  /** Another process begins to serve the persona of every start. */
  serve(version: string): MemoryPersonaInstance {
    return this.personas.serve(this.tenant, { ...Persona.parse(START.persona), version }, this.#models);
  }

  /** The host's table of hooks becomes another one: without those, or with others in their places. */
  async changeHooks(change: (table: HookTable) => HookTable): Promise<void> {
    this.#hooks.change(change);
    await this.time.settle();
  }

  /** The host is gone between two awaits, with everything that it was doing. */
  crash(): void {
    this.#host?.abandon();
    this.#host = null;
  }

  /** The host is gone before its append after so many more. */
  crashAfter(appends: number): void {
    this.#appendsLeft = appends;
  }

  /** Somebody deletes the journal of a session. */
  delete(session: string): void {
    this.#deleted.add(session);
  }

  /** Starts the session, or another one, and lets everything happen that needs no time. */
  async start(settings: JsonObject = {}, session?: string): Promise<void> {
    this.publish('start', { ...START, ...settings }, undefined, session);
    await this.time.settle();
  }

  /** Starts the session, or another one, as a fork at record `n`; at the newest where that is null. */
  async fork(origin: string, at: number | null, changes?: JsonObject, session?: string): Promise<void> {
    const n = at ?? (await this.records(origin)).length;
    this.publish('start', { fork: { session: origin, n, ...(changes ? { changes } : {}) } }, undefined, session);
    await this.time.settle();
  }

  /** Sends a command, and lets everything happen that needs no time. @returns its id. */
  async send(verb: string, body: JsonObject | string = {}, id?: string, session?: string): Promise<string> {
    const sent = this.publish(verb, body, id, session);
    await this.time.settle();
    return sent;
  }

  /** Sends what a seam is to deliver. In a control it is not sent. */
  async inject(verb: 'steer' | 'remind', body: JsonObject): Promise<void> {
    if (this.#heedsInjections) await this.send(verb, body);
  }

  /** A server of the session logs a warning. In a control it does not. */
  async notify(text: string): Promise<void> {
    if (this.#heedsInjections) this.#onFeedback?.('mcp:harbour', `warning: ${text}`);
    await this.time.settle();
  }

  /** Lets time pass. */
  async wait(ms: number): Promise<void> {
    await this.time.advance(ms);
  }

  /** Sends a command and returns at once, so that the next one finds nothing done in between. @returns its id. */
  publish(verb: string, body: JsonObject | string = {}, id = this.#nextId(verb), session = 's1'): string {
    const payload = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body), 'utf8');
    this.bus.publish(subjects.command(sessionRef(session), verb), payload, { [HEADERS.commandId]: id });
    return id;
  }

  /** The stored bytes of the session's records, or of another's. */
  async records(session = 's1'): Promise<Uint8Array[]> {
    const records: Uint8Array[] = [];
    for await (const { bytes } of this.bus.journal.read(sessionRef(session))) records.push(bytes);
    return records;
  }

  /** Leaves everything. */
  close(): void {
    this.crash();
    this.bus.close();
  }

  #nextId(verb: string): string {
    const number = (this.#sent.get(verb) ?? 0) + 1;
    this.#sent.set(verb, number);
    return `${verb}-${number}`;
  }

  #journal(): Journal {
    const { journal } = this.bus;
    return {
      append: (ref, bytes, fence) => {
        if (--this.#appendsLeft >= 0) return journal.append(ref, bytes, fence);
        this.#appendsLeft = Number.POSITIVE_INFINITY;
        this.crash();
        return Promise.resolve({ status: 'ambiguous', cause: 'the host is gone' });
      },
      firstAfter: (ref, fence) => journal.firstAfter(ref, fence),
      read: (ref, fence) => (this.#deleted.has(ref.sessionId) ? nothing() : journal.read(ref, fence)),
      last: (ref) => (this.#deleted.has(ref.sessionId) ? Promise.resolve(null) : journal.last(ref)),
      sessions: (tenant) => journal.sessions(tenant),
      sessionsOf: (partition) => journal.sessionsOf(partition),
    };
  }

  #toolSource(): ToolSource {
    const { openingTakesMs = 0, toolsDoNotOpen } = this.#scenario.trouble ?? {};
    return {
      open: async (spec, signal) => {
        if (openingTakesMs > 0) await this.#clock.sleep(openingTakesMs, signal);
        if (toolsDoNotOpen) return { code: 'mcp_server_failed', message: 'the server of the winch did not answer' };
        this.#onFeedback = spec.onFeedback;
        return this.#tools.open(spec, signal);
      },
    };
  }
}

async function* nothing(): AsyncGenerator<never> {}

function oneTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function rejecting(models: Models): Models {
  return {
    check: (model) => models.check(model),
    resolve: () => ({ stream: () => Promise.reject(new Error('the model port rejected')) }),
  };
}

class TracedHooks implements Hooks {
  readonly #hooks: readonly TracedHook[];
  readonly #clock: Clock;
  #table: HookTable;
  #changed: () => void = () => {};

  constructor(hooks: readonly TracedHook[], clock: Clock) {
    this.#hooks = hooks;
    this.#clock = clock;
    this.#table = hooks.map(({ registration }) => HookRegistration.parse(registration));
  }

  table(): HookTable {
    return this.#table;
  }

  onChange(changed: () => void): () => void {
    this.#changed = changed;
    return () => {
      this.#changed = () => {};
    };
  }

  change(change: (table: HookTable) => HookTable): void {
    this.#table = change(this.#table);
    this.#changed();
  }

  async ask({ registration, payload }: HookRequest, signal: AbortSignal): Promise<HookReply> {
    const hook = this.#hooks.find((candidate) => candidate.registration.id === registration.id);
    if (hook?.afterMs !== undefined) await this.#clock.sleep(hook.afterMs, signal);
    const returns = typeof hook?.returns === 'function' ? hook.returns(payload) : hook?.returns;
    return returns instanceof Error
      ? { status: 'failed', code: 'hook_threw', message: returns.message }
      : { status: 'returned', raw: returns };
  }
}
