/**
 * Access to sessions as wire documents in snake_case, for programs that forward them unchanged, such as gateways and
 * commands that print JSON. Other programs use `Client` and `Session`.
 */
import type { CommandId, Receipt, SessionRef, SessionStatus, Verb } from '@coxswain/protocol';
import { InvalidOptionError } from './client-errors.ts';
import { refuseOthers } from './command-form.ts';
import { JournalReceipt } from './journal-receipt.ts';
import { checkOptions, checkSendOptions, checkTime } from './option-checks.ts';
import type { BodyInput, SendOptions, SendStage, WireSentCommand } from './outgoing-command.ts';
import type { WirePendingApproval } from './pending-approvals.ts';
import type { ListQuery, WireSessionsPage } from './session-listing.ts';
import type { WireSessionTree } from './session-tree.ts';
import type { Transport } from './transport.ts';

const ASKED_EVERY_MS = 25;
const CAUGHT_UP_WITHIN_MS = 5_000;

/** Options for querying a host. */
export interface StateOptions {
  /** The timeout in milliseconds. Default: 5,000 over NATS; over HTTP the timeouts of requests. */
  readonly timeoutMs?: number | undefined;
}

/** Notified of the commands of a handle. */
interface SendObserver {
  readonly sending: (verb: Verb) => void;
  readonly sent: (verb: Verb, body: object, sent: WireSentCommand, options: SendOptions<SendStage>) => void;
}

/** One session as wire documents. */
export class SessionWire {
  readonly #transport: Transport;
  readonly #ref: SessionRef;
  readonly #observer: SendObserver;

  /** Created by a session handle. @internal */
  constructor(transport: Transport, ref: SessionRef, observer: SendObserver) {
    this.#transport = transport;
    this.#ref = ref;
    this.#observer = observer;
  }

  /**
   * Sends a command by its verb and its whole body, as on NATS.
   * @param options `wait: 'outcome'` for `cancel_call` only: then `cancellation` has the outcome.
   * @throws CommandRejectedError before anything is sent if the body is invalid for the verb. InvalidOptionError for an
   *   invalid `wait`, time or signal. The errors of {@link Session}'s commands.
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

  /** The state of the session. Queries a session host. @throws NoHostError, SessionNotFoundError. */
  async state(options: StateOptions = {}): Promise<SessionStatus> {
    checkOptions(options);
    const { timeoutMs, ...others } = options;
    refuseOthers(others);
    checkTime('timeoutMs', timeoutMs);
    return this.#transport.state(this.#ref, timeoutMs);
  }

  /**
   * The state of the session after a record. A host may answer from an earlier state until it has applied its newest
   * records, or have too many queries: it is queried again for up to five seconds.
   * @param n The number of the record.
   * @param signal Ends the wait.
   * @returns the newest state, even if it is older than the record at the end.
   * @throws the errors of {@link state}, and the signal's reason.
   */
  async stateAfter(n: number, { signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<SessionStatus> {
    const untilMs = performance.now() + CAUGHT_UP_WITHIN_MS;
    for (;;) {
      try {
        const status = await this.state();
        if (status.n >= n || performance.now() > untilMs) return status;
      } catch (error) {
        const { code } = error as { readonly code?: unknown };
        if (code !== 'too_many_queries' || performance.now() > untilMs) throw error;
      }
      signal?.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, ASKED_EVERY_MS));
    }
  }

  /** The session and its descendants. */
  tree(): Promise<WireSessionTree> {
    return this.#transport.tree(this.#ref);
  }

  /**
   * The receipt of a command, derived from the stored records; null if no record contains the command.
   * @throws InvalidOptionError if the id is not a string.
   */
  async receiptOf(commandId: string): Promise<Receipt | null> {
    if (typeof commandId !== 'string')
      throw new InvalidOptionError('receiptOf() takes the id of a command: receiptOf(sent.commandId)', 'commandId');
    const journalReceipt = new JournalReceipt(commandId as CommandId);
    let receipt: Receipt | null = null;
    for await (const { record } of this.#transport.journal(this.#ref, 1)) receipt = journalReceipt.add(record);
    return receipt;
  }
}

/** The sessions of a tenant as wire documents. */
export class ClientWire {
  readonly #transport: Transport;

  /** Created by a client. @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * A page of sessions, the most recently changed first. Deleted sessions are included only with `state: 'deleted'`.
   * @throws ReadRefusedError `invalid_field` for an invalid cursor or limit.
   */
  async listSessions(query: ListQuery = {}): Promise<WireSessionsPage> {
    checkOptions(query);
    return this.#transport.listSessions(query);
  }

  /**
   * The pending approvals of all sessions, the longest pending first. It queries session hosts for a few sessions at a
   * time.
   */
  approvals(): Promise<WirePendingApproval[]> {
    return this.#transport.approvals();
  }
}
