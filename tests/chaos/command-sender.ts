/**
 * Publishes commands and writes down each attempt, what the store said to it, and every receipt. What was not
 * acknowledged is published again under the same id, as a careful client does.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Client,
  CommandBlockedError,
  CommandNotStoredError,
  CommandRejectedError,
  CommandRevokedError,
  ReceiptTimeoutError,
  receiptToWire,
  type SentCommand,
  sentCommand,
} from '@coxswain/client';
import { HEADERS, Receipt, sessionRef, subjects } from '@coxswain/protocol';
import { createInbox, headers, type NatsConnection } from '@nats-io/transport-node';
import type { HistoryWriter } from './history.ts';

/** A command to be sent. */
export interface OutgoingCommand {
  readonly session: string;
  readonly verb: string;
  readonly body: object;
  readonly commandId: string;
  readonly over: 'client' | 'bare';
  /** Published before. */
  readonly again?: boolean;
  /** Without it only the session can know a repetition. Default true. */
  readonly isForStore?: boolean;
}

const STORE_TIMEOUT_MS = 5_000;
const TRIES_MAX = 30;
const TRY_AGAIN_MS = 500;

/** See the top of the file. */
export class CommandSender {
  readonly #bare: NatsConnection;
  readonly #client: Client;
  readonly #history: HistoryWriter;
  readonly #receiptsTo = createInbox();
  readonly #ended: AbortSignal;
  readonly #underWay = new Set<Promise<void>>();
  #op = 0;

  /** @param ended no attempt is made after it. */
  constructor(bare: NatsConnection, client: Client, history: HistoryWriter, ended: AbortSignal) {
    this.#bare = bare;
    this.#client = client;
    this.#history = history;
    this.#ended = ended;
    bare.subscribe(this.#receiptsTo, {
      callback: (error, message) => {
        if (!error) history.push({ what: 'receipt', receipt: Receipt.parse(message.json()) });
      },
    });
  }

  /** Sends one; does not reject, and nobody need wait. Resolves when it is stored, or given up. */
  send(command: OutgoingCommand): Promise<void> {
    const one = this.#send(command).finally(() => this.#underWay.delete(one));
    this.#underWay.add(one);
    return one;
  }

  /** Resolves when nothing is being sent. */
  async settled(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  async #send(command: OutgoingCommand): Promise<void> {
    const { session, verb, commandId, over } = command;
    for (let attempt = 0; attempt < TRIES_MAX && !this.#ended.aborted; attempt++) {
      const op = ++this.#op;
      const again = command.again === true || attempt > 0;
      this.#history.push({ what: 'invoked', op, session, verb, commandId, over, again });
      if (await (over === 'client' ? this.#typed(op, command) : this.#plain(op, command))) return;
      await sleep(TRY_AGAIN_MS, undefined, { signal: this.#ended }).catch(() => undefined);
    }
  }

  /** As a stranger with a NATS client does it. @returns whether it is stored. */
  async #plain(op: number, { session, verb, body, commandId, isForStore = true }: OutgoingCommand): Promise<boolean> {
    const ref = sessionRef(session);
    const head = headers();
    head.set(HEADERS.commandId, commandId);
    head.set(HEADERS.receiptTo, this.#receiptsTo);
    if (isForStore) head.set('Nats-Msg-Id', subjects.commandMessageId(ref, commandId));
    try {
      const answer = await this.#bare.request(subjects.command(ref, verb), JSON.stringify(body), {
        headers: head,
        timeout: STORE_TIMEOUT_MS,
      });
      const ack = answer.json() as { seq?: number; duplicate?: boolean; error?: { description: string } };
      if (ack.error || ack.seq === undefined) {
        const error = ack.error?.description ?? 'the answer is no acknowledgement';
        this.#history.push({ what: 'unacknowledged', op, isCertain: true, error });
        return false;
      }
      this.#history.push({ what: 'stored', op, seq: ack.seq, duplicate: ack.duplicate === true });
      return true;
    } catch (error) {
      this.#history.push({ what: 'unacknowledged', op, isCertain: false, error: (error as Error).message });
      return false;
    }
  }

  /** As programs do it: with the typed client, and waiting for the session to take it. @returns whether it is stored. */
  async #typed(op: number, command: OutgoingCommand): Promise<boolean> {
    try {
      const { seq, duplicate, receipt } = await typedSend(this.#client, command);
      this.#history.push({ what: 'stored', op, seq, duplicate });
      if (receipt) this.#history.push({ what: 'receipt', receipt: receiptToWire(receipt) });
      return true;
    } catch (error) {
      const { message } = error as Error;
      if (error instanceof CommandNotStoredError) {
        this.#history.push({ what: 'unacknowledged', op, isCertain: false, error: message });
        return false;
      }
      const isTold =
        error instanceof CommandRejectedError ||
        error instanceof CommandBlockedError ||
        error instanceof CommandRevokedError;
      if (!isTold && !(error instanceof ReceiptTimeoutError)) {
        this.#history.push({ what: 'unacknowledged', op, isCertain: false, error: message });
        return false;
      }
      this.#history.push({ what: 'stored', op, seq: null, duplicate: false });
      if (!isTold) this.#history.push({ what: 'no_receipt', op, error: message });
      return true;
    }
  }
}

function typedSend(client: Client, { session: id, verb, body, commandId }: OutgoingCommand): Promise<SentCommand> {
  const session = client.session(id);
  const options = { id: commandId, wait: 'accepted' as const };
  const fields = body as { body: string; mode?: 'finish_step' | 'interrupt_immediate' | 'audit_only'; preempt?: true };
  switch (verb) {
    case 'steer':
      return session.steer(fields.body, {
        ...(fields.preempt ? { preempt: fields.preempt } : { mode: fields.mode }),
        ...options,
      });
    case 'remind':
      return session.remind(fields.body, options);
    case 'followup':
      return session.followup(fields.body, options);
    case 'prompt':
      return session.prompt(fields.body, options);
    case 'cancel':
      return session.cancel(undefined, options);
    case 'cancel_call':
      return session.wire.send('cancel_call', body as { call_id: string }, options).then(sentCommand);
    case 'approve': {
      const { call_id: callId, decision } = body as { call_id: string; decision: 'allow' | 'deny' };
      return decision === 'allow' ? session.approve(callId, options) : session.deny(callId, options);
    }
    default:
      throw new Error(`the harness does not send ${verb} over the typed client`);
  }
}
