/** Notifies listeners when the connection is lost or restored, and when the server rejects a publish. */
import { type NatsConnection, PermissionViolationError } from '@nats-io/nats-core';

/** The part of a log that this package writes to. */
export interface BusLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Callbacks for connection changes. Contract: they return at once and do not throw. */
export interface ConnectionListener {
  /** The connection is lost. Open requests get no answers, and the library drops messages published from now on. */
  lost?(): void;
  /**
   * The connection is restored, and the library has subscribed again. Other server-side state, such as pull requests,
   * is lost.
   */
  restored?(): void;
  /** The server dropped a message on this subject: this user has no permission to publish there. */
  refused?(subject: string): void;
}

/** The part of a connection that reports its changes. */
type ChangingConnection = Pick<NatsConnection, 'status'>;

const listenersOf = new WeakMap<ChangingConnection, Set<ConnectionListener>>();

/** Adds a listener to a connection. @returns a function that removes it. */
export function onConnectionChange(nc: ChangingConnection, listener: ConnectionListener): () => void {
  let listeners = listenersOf.get(nc);
  if (!listeners) {
    listeners = new Set();
    listenersOf.set(nc, listeners);
    // Owned by the connection: the status iterator ends with it and does not throw.
    void follow(nc, listeners);
  }
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Logs when the connection is lost and when it is restored. @returns a function that ends it. */
export function logConnection(nc: NatsConnection, log: BusLog): () => void {
  return onConnectionChange(nc, {
    lost: () => log.warn({}, 'the connection to NATS is lost; reconnecting'),
    restored: () => log.info({}, 'the connection to NATS is restored'),
  });
}

async function follow(nc: ChangingConnection, listeners: ReadonlySet<ConnectionListener>): Promise<void> {
  for await (const status of nc.status()) {
    const { type } = status;
    if (type === 'error' && status.error instanceof PermissionViolationError && status.error.operation === 'publish')
      for (const listener of listeners) listener.refused?.(status.error.subject);
    if (type === 'disconnect') for (const listener of listeners) listener.lost?.();
    if (type === 'reconnect') for (const listener of listeners) listener.restored?.();
  }
}
