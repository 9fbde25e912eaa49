/**
 * Sessions in the form of the wire, with names in snake_case: for programs that pass documents on as they are, such as gateways and
 * commands that print JSON. Everything else uses `Client` and `Session`.
 */
import type { CommandId, Receipt, SessionRef, SessionStatus, Verb } from '@coxswain/protocol';
import { InvalidOptionError } from './client-errors.ts';
import { CommandFate } from './command-fate.ts';
import { refuseOthers } from './command-form.ts';
import { checkOptions, checkSendOptions, checkTime } from './option-checks.ts';
import type { BodyInput, SendOptions, SendStage, WireSentCommand } from './outgoing-command.ts';
import type { ListQuery, WireSessionsPage } from './session-listing.ts';
import type { WireSessionTree } from './session-tree.ts';
import type { Transport } from './transport.ts';
import type { WirePendingApproval } from './waiting-approvals.ts';

const ASKED_EVERY_MS = 25;
const CAUGHT_UP_WITHIN_MS = 5_000;

/** How a host is asked what a session is doing. */
export interface StateOptions {
  /** How long an answer is waited for, milliseconds; default 5,000. */
  readonly timeoutMs?: number | undefined;
}

/** What a handle notes of its commands. */
interface SendObserver {
  readonly sending: (verb: Verb) => void;
  readonly sent: (verb: Verb, body: object, sent: WireSentCommand, options: SendOptions<SendStage>) => void;
}

/** One session in the form of the wire. */
export class SessionWire {
  readonly #transport: Transport;
  readonly #ref: SessionRef;
  readonly #observer: SendObserver;

  /** Made by a session handle. @internal */
  constructor(transport: Transport, ref: SessionRef, observer: SendObserver) {
    this.#transport = transport;
    this.#ref = ref;
    this.#observer = observer;
  }

  /**
   * Sends any command by its verb and its whole body, as NATS has it.
   * @param options `wait: 'outcome'` goes with `cancel_call` only: then `cancellation` has the outcome.
   * @throws CommandRejectedError before anything is sent where the body does not fit the verb; InvalidOptionError for an
   *   invalid `wait`, time or signal.
   */
  async send<V extends Verb>(
    verb: V,
    body: BodyInput<V>,
    options: SendOptions<SendStage> = {},
  ): Promise<WireSentCommand> {
    checkSendOptions(verb, options);
    this.#observer.sending(verb);
    const sent = await this.#transport.send(this.#ref, verb, body, options);
    this.#observer.sent(verb, body, sent, options);
    return sent;
  }

  /** What the session is doing. Answered by a host. */
  async state(options: StateOptions = {}): Promise<SessionStatus> {
    checkOptions(options);
    const { timeoutMs, ...others } = options;
    refuseOthers(others);
    checkTime('timeoutMs', timeoutMs);
    return this.#transport.state(this.#ref, timeoutMs);
  }

  /**
   * What the session is doing after a record that the caller has read: a host may answer from an earlier state, until it has applied what it
   * has just written.
   * @param n the record, by its number.
   * @param signal ends the waiting.
   * @returns the newest answer, also where none was of that record within five seconds.
   * @throws what {@link state} throws, and the signal's reason.
   */
  async stateAfter(n: number, { signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<SessionStatus> {
    const untilMs = performance.now() + CAUGHT_UP_WITHIN_MS;
    for (;;) {
      const status = await this.state();
      if (status.n >= n || performance.now() > untilMs) return status;
      signal?.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, ASKED_EVERY_MS));
    }
  }

  /** The session and all that were started below it. */
  tree(): Promise<WireSessionTree> {
    return this.#transport.tree(this.#ref);
  }

  /**
   * What became of a command, by the records that are stored now; null where none of them holds it.
   * @throws InvalidOptionError where the id is not a text.
   */
  async receiptOf(commandId: string): Promise<Receipt | null> {
    if (typeof commandId !== 'string')
      throw new InvalidOptionError('receiptOf() takes the id of a command: receiptOf(sent.commandId)', 'commandId');
    const fate = new CommandFate(commandId as CommandId);
    let receipt: Receipt | null = null;
    for await (const { record } of this.#transport.journal(this.#ref, 1)) receipt = fate.add(record);
    return receipt;
  }
}

/** The sessions of a tenant in the form of the wire. */
export class ClientWire {
  readonly #transport: Transport;

  /** Made by a client. @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * One page of sessions, for programs that show pages: the one that was written to last coming first; deleted ones only where their state
   * is asked for.
   * @throws `invalid_field` for a cursor that was not given out.
   */
  async listSessions(query: ListQuery = {}): Promise<WireSessionsPage> {
    checkOptions(query);
    return this.#transport.listSessions(query);
  }

  /** Every approval that is waited for, across sessions, the longest first. Asked of hosts, a few sessions at a time. */
  approvals(): Promise<WirePendingApproval[]> {
    return this.#transport.approvals();
  }
}
