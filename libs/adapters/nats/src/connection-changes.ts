/** Tells who needs it that the connection is lost and that it is there again. */
import type { Log } from '@coxswain/ports';
import { type NatsConnection, PermissionViolationError } from '@nats-io/nats-core';

/** Contract: these return at once and do not throw. */
export interface ConnectionListener {
  /** Answers to what has been sent will not come, and what is published now goes nowhere: the library drops it. */
  lost?(): void;
  /** The library has subscribed again. What else the server held for us, such as pull requests, is gone. */
  restored?(): void;
  /** The server has let fall what was published on this subject: this user may not. */
  refused?(subject: string): void;
}

const listenersOf = new WeakMap<NatsConnection, Set<ConnectionListener>>();

/** Listens to the connection. @returns a function that ends it. */
export function onConnectionChange(nc: NatsConnection, listener: ConnectionListener): () => void {
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

/** Has a service's log say when the bus is away, and when it is back. @returns a function that ends it. */
export function logConnection(nc: NatsConnection, log: Log): () => void {
  return onConnectionChange(nc, {
    lost: () => log.warn({}, 'the connection to NATS is lost; reconnecting'),
    restored: () => log.info({}, 'the connection to NATS is restored'),
  });
}

async function follow(nc: NatsConnection, listeners: ReadonlySet<ConnectionListener>): Promise<void> {
  for await (const status of nc.status()) {
    const { type } = status;
    if (type === 'error' && status.error instanceof PermissionViolationError && status.error.operation === 'publish')
      for (const listener of listeners) listener.refused?.(status.error.subject);
    if (type === 'disconnect') for (const listener of listeners) listener.lost?.();
    if (type === 'reconnect') for (const listener of listeners) listener.restored?.();
  }
}
