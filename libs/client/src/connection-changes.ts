/** Notifications about a lost or restored NATS connection. */
import type { NatsConnection } from '@nats-io/nats-core';

/** Contract: returns at once and does not throw. */
type OnChange = (isConnected: boolean) => void;

const listenersOf = new WeakMap<NatsConnection, Set<OnChange>>();

/** Calls back when the connection is lost and when it is restored. @returns a function that removes the listener. */
export function onConnectionChange(nc: NatsConnection, listener: OnChange): () => void {
  let listeners = listenersOf.get(nc);
  if (!listeners) {
    listeners = new Set();
    listenersOf.set(nc, listeners);
    // One loop per connection, which ends with it: the library keeps a status loop until the next status arrives.
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
