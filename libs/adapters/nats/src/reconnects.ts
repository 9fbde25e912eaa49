/** Tells who needs it that the connection is there again: what the server held for us meanwhile is lost. */
import type { NatsConnection } from '@nats-io/nats-core';

const listenersOf = new WeakMap<NatsConnection, Set<() => void>>();

/**
 * Calls `listener` after each reconnect. Contract: it returns at once and does not throw.
 * @returns a function that ends it.
 */
export function onReconnect(nc: NatsConnection, listener: () => void): () => void {
  let listeners = listenersOf.get(nc);
  if (!listeners) {
    listeners = new Set();
    listenersOf.set(nc, listeners);
    // Owned by the connection: its status ends with it and does not throw.
    void follow(nc, listeners);
  }
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

async function follow(nc: NatsConnection, listeners: ReadonlySet<() => void>): Promise<void> {
  for await (const status of nc.status()) {
    if (status.type === 'reconnect') for (const listener of listeners) listener();
  }
}
