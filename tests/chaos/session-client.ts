/** The client of one session: does what the plan says, answers what the session asks, prompts it again when it has ended. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { JournalRecord, SessionEvent } from '@coxswain/protocol';
import type { CommandSender } from './command-sender.ts';
import type { ActionKind, PlannedAction, PlannedSession } from './generator.ts';

/** What a session's client needs of its surroundings. */
export interface ClientPorts {
  readonly sender: CommandSender;
  /** Milliseconds since the load began. */
  sinceBegan(): number;
  /** The session's records from `n` on, as they are stored now. */
  recordsFrom(session: string, n: number): Promise<readonly JournalRecord[]>;
  /** Aborts when the load is over: nothing is begun any more. Approvals are still given. */
  readonly loadEnded: AbortSignal;
  /** Aborts when everything ends. */
  readonly ended: AbortSignal;
}

/** A session of which nothing is heard for so long is looked at: events of the bus are not kept. */
const LOOK_AFTER_MS = 3_000;
/** A session that has ended and was not prompted in spite of it. */
const PROMPT_AGAIN_MS = 6_000;

type Published = Pick<JournalRecord, 'n' | 'events' | 'state'>;

/** See the top of the file. */
export class SessionClient {
  readonly plan: PlannedSession;
  readonly #ports: ClientPorts;
  readonly #model: string;
  readonly #open = new Set<string>();
  readonly #parked = new Set<string>();
  #seen = 0;
  #heardMs = 0;
  #state: JournalRecord['state'] = 'provisioning';
  #looking: Promise<void> | null = null;
  #prompts = 0;
  #answers = 0;
  #last: { readonly verb: string; readonly body: object; readonly commandId: string } | null = null;

  constructor(plan: PlannedSession, model: string, ports: ClientPorts) {
    this.plan = plan;
    this.#model = model;
    this.#ports = ports;
  }

  get id(): string {
    return this.plan.id;
  }

  /** Whether the newest record that was heard of ends a run. */
  get hasEnded(): boolean {
    return this.#seen > 0 && (this.#state === 'stopped' || this.#state === 'failed');
  }

  /** What it was last heard of, for reports. */
  get told(): string {
    return `${this.id}: record ${this.#seen}, ${JSON.stringify(this.#state)}`;
  }

  /** Does everything that is planned. Resolves at the end of the load. Does not reject. */
  async run(): Promise<void> {
    const { plan } = this;
    if (!(await this.#until(plan.startAtMs))) return;
    const rules = [...(plan.asksFor ? [{ tool: plan.asksFor, action: 'ask' }] : []), { tool: '*', action: 'allow' }];
    this.#heardMs = this.#ports.sinceBegan();
    const body = { prompt: 'Go on with the harbour.', model: this.#model, permissions: { rules }, max_turns: 200 };
    void this.#send('start', body, 'start');
    for (const action of plan.actions) {
      if (!(await this.#until(action.atMs))) return;
      this.#act(action);
    }
  }

  /** A record was published. */
  hear(record: Published): void {
    if (record.n === this.#seen + 1) this.#take(record);
    // One was missed.
    else if (record.n > this.#seen) void this.look();
  }

  /** Reads what was missed, and prompts a session that waits for it. Does not reject. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  /** To be called now and then. */
  mind(): void {
    // Of a long load, sessions that are over are the most: reading all of them again and again would be the load.
    if (this.hasEnded && this.#ports.sinceBegan() > this.plan.promptsUntilMs) return;
    const silentMs = this.#ports.sinceBegan() - this.#heardMs;
    if (this.#heardMs === 0 || silentMs < LOOK_AFTER_MS) return;
    void this.look();
    if (this.hasEnded && silentMs > PROMPT_AGAIN_MS) {
      this.#heardMs = this.#ports.sinceBegan();
      void this.#prompt();
    }
  }

  async #look(): Promise<void> {
    try {
      for (const record of await this.#ports.recordsFrom(this.id, this.#seen + 1)) {
        if (record.n === this.#seen + 1) this.#take(record);
      }
    } catch {
      // The store does not answer now: it is looked again.
    }
  }

  #take({ n, events, state }: Published): void {
    this.#seen = n;
    this.#state = state;
    this.#heardMs = this.#ports.sinceBegan();
    for (const event of events) this.#follow(event);
  }

  #follow(event: SessionEvent): void {
    switch (event.type) {
      case 'call_started':
        this.#open.add(event.call_id);
        break;
      case 'call_ended':
        this.#open.delete(event.call_id);
        this.#parked.delete(event.call_id);
        break;
      case 'approval_requested':
        this.#parked.add(event.call_id);
        void this.#answer(event.call_id);
        break;
      case 'agent_end':
        this.#open.clear();
        this.#parked.clear();
        void this.#promptLater();
        break;
      default:
        break;
    }
  }

  async #answer(call_id: string): Promise<void> {
    const { answers } = this.plan;
    const answer = answers[this.#answers++ % answers.length];
    if (!answer) return;
    const commandId = `approve-${this.#answers}`;
    await sleep(answer.afterMs, undefined, { signal: this.#ports.ended }).catch(() => undefined);
    if (this.#parked.has(call_id)) await this.#send('approve', { call_id, decision: answer.decision }, commandId);
  }

  async #promptLater(): Promise<void> {
    await sleep(this.plan.thinkMs, undefined, { signal: this.#ports.loadEnded }).catch(() => undefined);
    await this.#prompt();
  }

  async #prompt(): Promise<void> {
    if (this.#ports.loadEnded.aborted || this.#ports.sinceBegan() > this.plan.promptsUntilMs) return;
    await this.#send('prompt', { body: 'And now the next ship.' }, `prompt-${++this.#prompts}`);
  }

  #act({ kind, commandId, over, isForStore = true }: PlannedAction): void {
    if (kind === 'repeat') {
      const last = this.#last;
      if (last) void this.#ports.sender.send({ session: this.id, ...last, over: 'bare', again: true, isForStore });
      return;
    }
    // The newest call that is known, which may have ended by then: that is an answer too.
    const call_id = [...this.#open, ...this.#parked].at(-1) ?? 'c1_1';
    const { verb, body } = commandOf(kind, commandId, call_id);
    void this.#send(verb, body, commandId, over);
  }

  #send(verb: string, body: object, commandId: string, over: 'client' | 'bare' = 'bare'): Promise<void> {
    // The first command is not repeated: a start is either the session's first or refused as such.
    if (verb !== 'start') this.#last = { verb, body, commandId };
    return this.#ports.sender.send({ session: this.id, verb, body, commandId, over });
  }

  /** @returns whether the load still goes on then. */
  async #until(atMs: number): Promise<boolean> {
    const waitMs = atMs - this.#ports.sinceBegan();
    if (waitMs > 0) await sleep(waitMs, undefined, { signal: this.#ports.loadEnded }).catch(() => undefined);
    return !this.#ports.loadEnded.aborted;
  }
}

function commandOf(
  kind: Exclude<ActionKind, 'repeat'>,
  commandId: string,
  call_id: string,
): { readonly verb: string; readonly body: object } {
  const body = `${commandId}, if you please.`;
  switch (kind) {
    case 'steer':
      return { verb: 'steer', body: { body } };
    case 'interrupt':
      return { verb: 'steer', body: { body, mode: 'interrupt_immediate' } };
    case 'preempt':
      return { verb: 'steer', body: { body, mode: 'interrupt_immediate', preempt: true } };
    case 'audit':
      return { verb: 'steer', body: { body, mode: 'audit_only' } };
    case 'remind':
    case 'followup':
      return { verb: kind, body: { body } };
    case 'cancel_call':
      return { verb: kind, body: { call_id } };
    case 'cancel':
      return { verb: kind, body: {} };
  }
}
