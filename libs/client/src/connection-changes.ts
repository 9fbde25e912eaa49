/** Whether a connection to the bus holds: for all who follow something on it. */
import type { NatsConnection } from '@nats-io/nats-core';

/** Contract: returns at once and does not throw. */
type OnChange = (isConnected: boolean) => void;

const listenersOf = new WeakMap<NatsConnection, Set<OnChange>>();

/** Calls back when the connection is lost, and when it is back. @returns a function that ends it. */
export function onConnectionChange(nc: NatsConnection, listener: OnChange): () => void {
  let listeners = listenersOf.get(nc);
  if (!listeners) {
    listeners = new Set();
    listenersOf.set(nc, listeners);
    // One loop for each connection, which ends with it: the library keeps each loop until its next status.
    void follow(nc, listeners);
  }
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

async function follow(nc: NatsConnection, listeners: ReadonlySet<OnChange>): Promise<void> {
  for await (const { type } of nc.status()) {
    if (type === 'disconnect') for (const listener of listeners) listener(false);
    if (type === 'reconnect') for (const listener of listeners) listener(true);
  }
}
