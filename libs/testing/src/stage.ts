import { createMemoryBus, createMemoryPersonas, createMemoryRememberedRules } from '@coxswain/adapter-memory';
import type { Hooks, Log, Models, ToolSource, Toolset } from '@coxswain/ports';
import {
  type AnyHandler,
  decodeRecord,
  HEADERS,
  hasEnded,
  type JsonObject,
  type Persona,
  type Receipt,
  type SessionRef,
  type SessionStatus,
  sessionRef,
  subjects,
  topState,
} from '@coxswain/protocol';
import { createSessionHost, importJournal, type SessionHost } from '@coxswain/session';
import { type Journal, readJournalOf } from './journal.ts';
import type { CommandMove, WhichCall } from './moves.ts';
import { type Doing, PendingMoments } from './pending-moments.ts';
import { SceneError } from './testing-errors.ts';
import type { VirtualTime } from './virtual-time.ts';
import { WorkUnderWay } from './work-under-way.ts';

/** The settings of a stage. */
export interface StageSettings {
  readonly session: string;
  readonly root: string | undefined;
  readonly models: Models;
  readonly tools: ToolSource;
  readonly hooks: Hooks;
  /** The personas that the host finds by name. A persona with handlers is served, the others are known to the host. */
  readonly personas: readonly {
    readonly persona: Persona;
    readonly handlersById: Readonly<Record<string, AnyHandler>>;
    /** The ids of its handlers that are consulted before a daemon waits. */
    readonly idle: ReadonlySet<string>;
  }[];
  readonly defaultModel: string | undefined;
  readonly time: VirtualTime;
  readonly patienceMs: number;
  readonly withinMs: number;
}

/** A logger without output: the journal shows the behaviour of a session. */
export const QUIET: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

const INBOX = '_INBOX.testing';
/** Rare heartbeats, so that a month of virtual time costs little. */
const PLACID = { beatMs: 3_600_000, ttlMs: 4 * 3_600_000, leaseMs: 3 * 3_600_000 };
/** States in which a session waits for an event from outside, possibly indefinitely. */
const WAITING: ReadonlySet<string> = new Set(['function_awaiting_approval', 'suspended', 'daemon_idle']);

/**
 * The stage of a scene: a real session host on a memory bus. It has virtual time, counted ids, and the test's own
 * models, tools and hooks. The same scene produces the same journal on every machine.
 */
export class Stage {
  readonly ref: SessionRef;
  readonly #settings: StageSettings;
  readonly #time: VirtualTime;
  readonly #bus;
  readonly #host: SessionHost;
  readonly #work: WorkUnderWay;
  readonly #receipts: Receipt[] = [];
  /** Callbacks by command id: for a receipt, or for a hook's decision on a steering message. */
  readonly #settledCallbacks = new Map<string, () => void>();
  /** The newest state of each known session. */
  readonly #states = new Map<string, string>();
  readonly #ids = new Map<string, number>();
  #moments = new PendingMoments([]);
  #answers = 0;
  #sending = 0;

  constructor(settings: StageSettings) {
    this.#settings = settings;
    this.ref = sessionRef(settings.session);
    this.#time = settings.time;
    const clock = this.#time.clock();
    this.#work = new WorkUnderWay(settings.patienceMs);
    this.#bus = createMemoryBus(clock);
    this.#bus.subscribeReceipts(INBOX, (receipt) => this.#onReceipt(receipt));
    this.#follow(settings.session);
    const served = createMemoryPersonas();
    const plain = new Map<string, Persona>();
    for (const { persona, handlersById, idle } of settings.personas) {
      if (Object.keys(handlersById).length === 0) plain.set(persona.name, persona);
      else
        served.serve(
          this.ref.tenant,
          { ...persona, version: persona.version ?? 'test' },
          this.#models(),
          this.#tracked(handlersById, idle),
        );
    }
    let serial = 0;
    this.#host = createSessionHost(
      {
        ...this.#bus.hostPorts(),
        clock,
        ids: { next: () => String(++serial) },
        log: QUIET,
        models: this.#models(),
        tools: this.#tools(),
        hooks: this.#hooks(),
        personas: { find: async (name) => plain.get(name) ?? null, names: async () => [...plain.keys()] },
        served,
        rememberedRules: createMemoryRememberedRules(),
        defaultRoot: settings.root ?? '/',
        defaultModel: settings.defaultModel,
        prices: [],
      },
      { name: 'test', liveness: PLACID },
    );
  }

  /** Imports a recorded journal. Call it before {@link start}. */
  async import(lines: () => AsyncIterable<Uint8Array>): Promise<void> {
    const ports = { journal: this.#bus.journal, blobs: this.#bus.blobs, clock: this.#time.clock() };
    await importJournal(ports, { lines, tenant: this.ref.tenant, as: this.ref.sessionId });
  }

  /** Starts the host. */
  async start(): Promise<void> {
    const started = this.#host.start();
    await this.#time.settle();
    await started;
  }

  /** Sets the commands that are to be sent while the session works. */
  arm(moments: PendingMoments): void {
    this.#moments = moments;
  }

  /** Sends a command, and runs until the session is idle. */
  async play(move: CommandMove, start: JsonObject): Promise<void> {
    const sent = this.#send(move, start);
    // These commands reach the bus before the session processes the prompt.
    const beside = move.verb === 'say' ? this.#at({ what: 'start' }) : null;
    await Promise.all([sent, beside, this.#untilRest()]);
    while (this.#states.get(this.ref.sessionId) === 'daemon_idle' && this.#moments.due({ what: 'idle' }).length > 0)
      await Promise.all([this.#at({ what: 'idle' }), this.#untilRest()]);
  }

  /** Advances the virtual time, and runs all work that becomes due. */
  async wait(ms: number): Promise<void> {
    const untilMs = this.#time.nowMs + ms;
    for (;;) {
      await this.#atOnce();
      const leftMs = untilMs - this.#time.nowMs;
      if (leftMs <= 0) return;
      // Stops as soon as work of the test starts.
      await this.#time.until(() => this.#work.any, leftMs);
    }
  }

  /** The journal of the session under test. */
  async journal(before: number): Promise<Journal> {
    const bytes: Uint8Array[] = [];
    for await (const stored of this.#bus.journal.read(this.ref)) bytes.push(stored.bytes);
    return readJournalOf(bytes, this.#bus.blobs, { before, receipts: [...this.#receipts] });
  }

  /** Runs all work that needs no virtual time. */
  async #atOnce(): Promise<void> {
    for (;;) {
      await this.#time.settle();
      if (!this.#work.any) return;
      await this.#work.some();
    }
  }

  async #untilRest(): Promise<void> {
    const limitMs = this.#time.nowMs + this.#settings.withinMs;
    for (;;) {
      await this.#atOnce();
      if (this.#isIdle()) return;
      const leftMs = limitMs - this.#time.nowMs;
      const goesOn = leftMs > 0 && (await this.#time.until(() => this.#work.any || this.#isIdle(), leftMs));
      if (!goesOn) throw new SceneError(await this.#notIdleMessage());
    }
  }

  #isIdle(): boolean {
    if (this.#sending > 0 || this.#work.any) return false;
    const own = this.#states.get(this.ref.sessionId);
    // Without a record, the receipt tells the sender why the command was rejected.
    if (own === undefined || own === 'stopped' || own === 'failed' || WAITING.has(own)) return true;
    // It waits for a child that waits for a person.
    return [...this.#states].some(([id, state]) => id !== this.ref.sessionId && WAITING.has(state));
  }

  async #notIdleMessage(): Promise<string> {
    const { state, lines } = await this.journal(0);
    const said = `the session has not become idle within ${this.#settings.withinMs} ms of its own time: it is in ${state}`;
    return [said, 'its last events:', ...lines.slice(-10).map((line) => `  ${line}`)].join('\n');
  }

  /**
   * Sends a command. Resolves once the session has accepted or rejected it.
   * @param start the settings for a first prompt, which starts the session; null if the start is sent already.
   * @returns the command id.
   */
  async #send(move: CommandMove, start: JsonObject | null): Promise<string> {
    this.#sending++;
    try {
      const exists = start === null || this.#states.has(this.ref.sessionId);
      const isStart = move.verb === 'say' && !exists;
      const verb = move.verb === 'say' ? (isStart ? 'start' : 'prompt') : move.verb;
      if (!exists && !isStart && verb !== 'start')
        throw new SceneError(`${verb} was sent before the session started: send a prompt first`);
      const { body: text, ...rest } = move.body;
      const body = isStart ? { ...start, ...rest, prompt: text } : move.body;
      const call = move.call ? { call_id: await this.#callOf(verb, move.call.among, move.call.which) } : {};
      const id = this.#nextId(verb);
      const told = new Promise<void>((resolve) => this.#settledCallbacks.set(id, resolve));
      this.#bus.publish(subjects.command(this.ref, verb), Buffer.from(JSON.stringify({ ...body, ...call }), 'utf8'), {
        [HEADERS.commandId]: id,
        [HEADERS.receiptTo]: INBOX,
      });
      await told;
      const refused = this.#receipts.find((one) => one.command_id === id && one.stage === 'rejected');
      // A rejected start leaves no journal for the test.
      if (isStart && refused && !this.#states.has(this.ref.sessionId))
        throw new SceneError(`the session was not started: ${refused.code}: ${refused.message ?? ''}`);
      return id;
    } finally {
      this.#sending--;
    }
  }

  async #callOf(verb: string, among: 'waiting' | 'running', { tool, callId }: WhichCall): Promise<string> {
    const status = await this.#host.status(this.ref);
    const all = callsAmong(status, among);
    const fitting = all.filter(
      (call) => (tool === undefined || call.tool === tool) && (callId === undefined || call.call_id === callId),
    );
    const [only, ...more] = fitting;
    if (only && more.length === 0) return only.call_id;
    const what = among === 'waiting' ? 'waits for a person' : 'runs';
    const listed = all.map((call) => `${call.call_id} of ${call.tool}`).join(', ') || 'none';
    throw new SceneError(
      only
        ? `${verb}: more than one call ${what} (${listed}): say which by { tool } or { callId }`
        : `${verb}: no call${tool === undefined ? '' : ` of ${tool}`}${callId === undefined ? '' : ` ${callId}`} ${what}; those that do: ${listed}`,
    );
  }

  /** Sends the commands that are due during this activity. */
  async #at(doing: Doing): Promise<void> {
    const due = this.#moments.due(doing);
    // One command wakes a daemon. Its run would deliver the next one.
    for (const pending of doing.what === 'idle' ? due.slice(0, 1) : due) {
      // Marked before it is sent, so that it is due only once.
      pending.sent = '';
      pending.sent = await this.#send(pending.move.move, null);
    }
  }

  #onReceipt(receipt: Receipt): void {
    this.#receipts.push(receipt);
    const { command_id: id, stage } = receipt;
    if (stage === 'accepted' && /^(steer|remind)-/.test(id) && this.#isGuarded()) return;
    this.#settled(id);
  }

  /** Whether a hook may still block a steering message or a reminder after its receipt. */
  #isGuarded(): boolean {
    return (
      this.#settings.hooks.table(this.ref.tenant).some(({ point }) => point === 'user_prompt_submit') ||
      this.#settings.personas.some(({ persona }) =>
        (persona.hooks ?? []).some(({ event }) => /^(user_prompt_submit|UserPromptSubmit)$/.test(event)),
      )
    );
  }

  #settled(id: string): void {
    this.#settledCallbacks.get(id)?.();
    this.#settledCallbacks.delete(id);
  }

  #follow(session: string): void {
    this.#bus.subscribeEvents(sessionRef(session), ({ bytes }) => {
      const { state, events } = decodeRecord(bytes);
      this.#states.set(session, hasEnded(state) ? 'stopped' : topState(state));
      for (const event of events) {
        if (event.type === 'child_started' && !this.#states.has(event.session)) {
          this.#states.set(event.session, 'provisioning');
          this.#follow(event.session);
        }
        if (event.type === 'guard_ended' || event.type === 'injection_blocked') this.#settled(event.command_id);
      }
    });
  }

  #nextId(verb: string): string {
    const number = (this.#ids.get(verb) ?? 0) + 1;
    this.#ids.set(verb, number);
    return `${verb}-${number}`;
  }

  /** The models of the scene. The script decides their answers; the scene sends commands during and after them. */
  #models(): Models {
    const { models } = this.#settings;
    return {
      check: (model) => this.#work.do('looking for the model', () => models.check(model)),
      resolve: (settings) => {
        const model = models.resolve(settings);
        return {
          stream: async (request, onPart, signal) => {
            if (request.sessionId !== this.ref.sessionId || request.compaction !== undefined)
              return model.stream(request, onPart, signal);
            const meanwhile = this.#at({ what: 'answering', number: ++this.#answers });
            const [result] = await Promise.all([model.stream(request, onPart, signal), meanwhile]);
            if (result.status === 'complete')
              await this.#at({
                what: 'answered',
                withCalls: result.message.content.some(({ type }) => type === 'call'),
              });
            return result;
          },
        };
      },
    };
  }

  #tools(): ToolSource {
    return {
      open: async (spec, signal) => {
        const opened = await this.#work.do('opening the tools', () => this.#settings.tools.open(spec, signal));
        return 'call' in opened ? this.#watched(opened) : opened;
      },
    };
  }

  #watched(toolset: Toolset): Toolset {
    return {
      get tools() {
        return toolset.tools;
      },
      call: async (call, signal) => {
        const work = () => this.#work.do(`the tool ${call.tool}`, () => toolset.call(call, signal));
        if (call.ref.sessionId !== this.ref.sessionId) return work();
        const [outcome] = await Promise.all([work(), this.#at({ what: 'calling', tool: call.tool })]);
        return outcome;
      },
      needsApproval: (question, signal) =>
        this.#work.do(
          `needsApproval of ${question.tool}`,
          async () => (await toolset.needsApproval?.(question, signal)) ?? true,
        ),
      probe: (key, tool, epoch) => toolset.probe(key, tool, epoch),
      stop: async (key, tool, reason, epoch) => (await toolset.stop?.(key, tool, reason, epoch)) ?? false,
      close: () => toolset.close(),
    };
  }

  #hooks(): Hooks {
    const { hooks } = this.#settings;
    return {
      table: (tenant) => hooks.table(tenant),
      onChange: (changed) => hooks.onChange?.(changed) ?? (() => {}),
      ask: async (request, signal) => {
        const work = () => this.#work.do(`the hook ${request.registration.id}`, () => hooks.ask(request, signal));
        if (request.registration.point !== 'session_idle' || request.ref.sessionId !== this.ref.sessionId)
          return work();
        const [reply] = await Promise.all([work(), this.#at({ what: 'idle hook' })]);
        return reply;
      },
    };
  }

  /** Handlers of a persona. The scene waits for their work. */
  #tracked(
    handlers: Readonly<Record<string, AnyHandler>>,
    idle: ReadonlySet<string>,
  ): Readonly<Record<string, AnyHandler>> {
    return Object.fromEntries(
      Object.entries(handlers).map(([id, handler]): [string, AnyHandler] => [
        id,
        async (payload, context) => {
          const work = () => this.#work.do(`the hook ${id}`, async () => handler(payload, context));
          if (!idle.has(id) || context.session.id !== this.ref.sessionId) return work();
          const [answer] = await Promise.all([work(), this.#at({ what: 'idle hook' })]);
          return answer;
        },
      ]),
    );
  }
}

function callsAmong(
  status: SessionStatus | null,
  among: 'waiting' | 'running',
): readonly { readonly call_id: string; readonly tool: string }[] {
  if (status === null) return [];
  return among === 'waiting' ? status.approvals : status.calls.filter((call) => call.status === 'running');
}
