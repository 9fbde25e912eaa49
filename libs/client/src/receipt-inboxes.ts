/**
 * Where the receipts of a connection's commands arrive: one subscription, opened with the first command that waits for one. A
 * subscription for each command would cost two more writes and two more changes of the server's routing table.
 */
import { createInbox, type Msg, type NatsConnection, type Subscription } from '@nats-io/nats-core';

/** Hears what comes to one inbox. */
export interface InboxListener {
  heard(message: Msg): void;
  /** The inbox receives nothing further: this user has no permission to subscribe to it. */
  failed(error: Error): void;
}

/** One inbox that is listened to. */
export interface OpenInbox {
  readonly subject: string;
  close(): void;
}

/** The inboxes of one connection. */
class ReceiptInboxes {
  readonly #nc: NatsConnection;
  readonly #prefix: string;
  readonly #listeners = new Map<string, InboxListener>();
  #subscription: Subscription | null = null;

  constructor(nc: NatsConnection, inboxPrefix: string | undefined) {
    this.#nc = nc;
    this.#prefix = `${createInbox(inboxPrefix)}.`;
  }

  /** Listens from now on. As many are open as commands wait, which is for their senders to bound. */
  open(listener: InboxListener): OpenInbox {
    // Not to be guessed from another command's.
    const token = crypto.randomUUID();
    this.#listeners.set(token, listener);
    // Written before whatever is published next.
    this.#subscription ??= this.#listen();
    return { subject: this.#prefix + token, close: () => void this.#listeners.delete(token) };
  }

  #listen(): Subscription {
    return this.#nc.subscribe(`${this.#prefix}*`, {
      callback: (error, message) => {
        if (error) return this.#fail(error);
        this.#listeners.get(message.subject.slice(this.#prefix.length))?.heard(message);
      },
    });
  }

  /** What is opened after it tries anew. */
  #fail(error: Error): void {
    this.#subscription?.unsubscribe();
    this.#subscription = null;
    const listeners = [...this.#listeners.values()];
    this.#listeners.clear();
    for (const listener of listeners) listener.failed(error);
  }
}

const ofConnection = new WeakMap<NatsConnection, ReceiptInboxes>();

/** Listens to a new inbox of this connection. @param inboxPrefix the same for all inboxes of one connection. */
export function openInbox(nc: NatsConnection, inboxPrefix: string | undefined, listener: InboxListener): OpenInbox {
  let inboxes = ofConnection.get(nc);
  if (!inboxes) {
    inboxes = new ReceiptInboxes(nc, inboxPrefix);
    ofConnection.set(nc, inboxes);
  }
  return inboxes.open(listener);
}
