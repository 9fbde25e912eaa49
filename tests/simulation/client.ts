/** The client: whoever sends commands to sessions and hears of them. It never crashes, and it does not know what is wrong with the hosts. */
import { HEADERS, parsePublishedCommand, positionalCommandId, sessionRef } from '@coxswain/protocol';
import type { Schedule } from './generator.ts';
import type { History } from './history.ts';
import type { PlannedCommand } from './plan-commands.ts';
import { SIGNALS } from './plan-suspension.ts';
import type { Random } from './random.ts';
import type { SimBus } from './sim-bus.ts';

const INBOX = '_INBOX.client';
const ID = /^[A-Za-z0-9_-]{1,64}$/;

/** See the top of the file. */
export class Client {
  readonly #bus: SimBus;
  readonly #history: History;
  readonly #random: Random;
  readonly #edits: Random;
  readonly #incarnation: { readonly stream: string; readonly created: string };
  #own = 0;

  constructor(bus: SimBus, history: History, random: Random) {
    this.#bus = bus;
    this.#history = history;
    this.#random = random;
    this.#edits = random.fork('edits');
    this.#incarnation = bus.bus.createInbox().incarnation;
    bus.bus.subscribeReceipts(INBOX, (receipt) =>
      history.push({ what: 'receipt', receipt, recordsThen: bus.recordsOf(receipt.session_id) }),
    );
  }

  /** Sends what the schedule says, and decides some of the approvals that are asked for. */
  follow(schedule: Schedule): void {
    for (const command of schedule.commands) {
      void this.#bus.world.sleep(command.atMs).then(() => this.send(command));
    }
    for (const { id } of schedule.sessions) {
      this.#bus.bus.subscribeEvents(sessionRef(id), ({ bytes }) => {
        const text = Buffer.from(bytes).toString('utf8');
        // Reading every record twice would cost more than the sessions themselves.
        if (!/"(approval_requested|call_started|suspended)"/.test(text)) return;
        const { events } = JSON.parse(text) as { events: { type: string; call_id?: string }[] };
        for (const { type, call_id } of events) {
          if (type === 'approval_requested' && this.#random.chance(schedule.attentive)) this.#decide(id, call_id);
          if (type === 'suspended' && this.#random.chance(schedule.meddling)) this.#disturb(id);
          if (type === 'call_started' && this.#random.chance(schedule.meddling)) this.#meddle(id, call_id);
        }
      });
    }
  }

  #decide(session: string, callId: string | undefined): void {
    const decision = this.#random.chance(0.7) ? 'allow' : 'deny';
    const isEdited = decision === 'allow' && this.#edits.chance(0.6);
    const edited = isEdited ? { args: { n: 1_000 + this.#edits.int(1_000) } } : {};
    this.#soon(3_000, session, 'approve', { call_id: callId, decision, ...edited });
  }

  #meddle(session: string, callId: string | undefined): void {
    const [verb, body] = this.#random.weighted<readonly [string, object]>([
      [4, ['cancel_call', { call_id: callId, timeout_ms: this.#random.pick([0, 300, 5_000]) }]],
      [3, ['steer', { body: `wait, ${callId}`, mode: 'interrupt' }]],
      [2, ['steer', { body: `now, ${callId}`, preempt: true }]],
      [2, ['steer', { body: `and ${callId}` }]],
      [1, ['suspend', {}]],
      [2, ['suspend', { for_ms: this.#random.pick([1, 500, 3_000]) }]],
      [1, ['cancel', { reason: 'enough' }]],
    ]);
    this.#soon(this.#random.pick([5, 100, 1_000]), session, verb, body);
  }

  #disturb(session: string): void {
    const [verb, body] = this.#random.pick<readonly [string, object]>([
      ['resume', {}],
      ['signal', { name: this.#random.pick(SIGNALS) }],
      ['steer', { body: `are you asleep, ${session}?`, mode: 'interrupt' }],
      ['cancel', { reason: 'it sleeps' }],
    ]);
    this.#soon(this.#random.pick([5, 1_000]), session, verb, body);
  }

  #soon(withinMs: number, session: string, verb: string, body: object): void {
    void this.#bus.world.sleep(this.#random.between(0, withinMs)).then(() => this.ask(session, verb, body));
  }

  /** Sends a command of the client's own. */
  ask(session: string, verb: string, body: object): Promise<void> {
    const payload = Buffer.from(JSON.stringify(body), 'utf8');
    return this.send({ atMs: 0, session, verb, payload, id: `client-${++this.#own}`, tell: true });
  }

  /** Sends the outcome of a call that a worker has taken up; it waits for the bus as long as it must. */
  bringOutcome(session: string, body: object, id: string | null): Promise<void> {
    const payload = Buffer.from(JSON.stringify(body), 'utf8');
    return this.send({ atMs: 0, session, verb: 'call_outcome', payload, id, tell: true });
  }

  /** Sends one command; while the bus is out of reach it waits, as its stores' acknowledgement would. */
  async send({ session, verb, payload, id, tell }: PlannedCommand): Promise<void> {
    while (this.#bus.isOut) await this.#bus.world.sleep(100);
    const subject = `cox.default.session.${session}.${verb}`;
    const seq = this.#bus.bus.publish(subject, payload, {
      ...(id === null ? {} : { [HEADERS.commandId]: id }),
      ...(tell ? { [HEADERS.receiptTo]: INBOX } : {}),
      [HEADERS.actor]: 'client',
    });
    if (seq === null || !parsePublishedCommand(subject)?.ref) return;
    const commandId = id !== null && ID.test(id) ? id : positionalCommandId(this.#incarnation, seq);
    this.#history.push({ what: 'sent', command: { session, seq, verb, commandId, tell } });
  }
}
