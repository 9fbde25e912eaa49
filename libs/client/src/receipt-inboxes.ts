/**
 * Inboxes for receipts: one subscription per connection, opened with the first command that waits for a receipt. A
 * subscription per command would cost two more writes and two more changes of the server's routing table.
 */
import { inboxPrefixOf } from '@coxswain/bus';
import { createInbox, type Msg, type NatsConnection, type Subscription } from '@nats-io/nats-core';

/** Receives the messages of one inbox. */
export interface InboxListener {
  onMessage(message: Msg): void;
  /** The inbox receives no further messages: this user has no permission to subscribe to it. */
  onError(error: Error): void;
}

/** An open inbox. */
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

  constructor(nc: NatsConnection) {
    this.#nc = nc;
    this.#prefix = `${createInbox(inboxPrefixOf(nc))}.`;
  }

  /** Opens an inbox. The number of open inboxes is not limited here; callers limit their pending commands. */
  open(listener: InboxListener): OpenInbox {
    // Unpredictable, so that it cannot be guessed from another inbox.
    const token = crypto.randomUUID();
    this.#listeners.set(token, listener);
    // Subscribed before anything is published next.
    this.#subscription ??= this.#listen();
    return { subject: this.#prefix + token, close: () => void this.#listeners.delete(token) };
  }

  #listen(): Subscription {
    return this.#nc.subscribe(`${this.#prefix}*`, {
      callback: (error, message) => {
        if (error) return this.#fail(error);
        this.#listeners.get(message.subject.slice(this.#prefix.length))?.onMessage(message);
      },
    });
  }

  /** Fails all open inboxes. A later inbox subscribes again. */
  #fail(error: Error): void {
    this.#subscription?.unsubscribe();
    this.#subscription = null;
    const listeners = [...this.#listeners.values()];
    this.#listeners.clear();
    for (const listener of listeners) listener.onError(error);
  }
}

const ofConnection = new WeakMap<NatsConnection, ReceiptInboxes>();

/** Opens an inbox on this connection. */
export function openInbox(nc: NatsConnection, listener: InboxListener): OpenInbox {
  let inboxes = ofConnection.get(nc);
  if (!inboxes) {
    inboxes = new ReceiptInboxes(nc);
    ofConnection.set(nc, inboxes);
  }
  return inboxes.open(listener);
}
