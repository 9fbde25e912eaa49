/** Connects a service to NATS. */
import { NatsUnavailableError, onConnectionChange } from '@coxswain/bus';
import type { Log } from '@coxswain/ports';
import { CONNECTION_LIVENESS } from '@coxswain/protocol';
import { type NatsConnection, nkeyAuthenticator } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import type { ConnectNatsOptions } from './bus-address.ts';

/**
 * Waits until a connection closes permanently. Lost connections are retried indefinitely, so this means that the server
 * no longer authorizes this user. Contract: the caller itself does not close the connection meanwhile.
 * @returns the error to report.
 */
export async function lostForGood(nc: NatsConnection): Promise<Error> {
  const why = await nc.closed();
  const cause = why instanceof Error ? `: ${why.message}` : '';
  return new NatsUnavailableError(`the bus no longer authorizes this user${cause}`);
}

/**
 * Connects to NATS. After the first connection it reconnects indefinitely, also if the server stops answering pings.
 * Pending requests have their own timeouts.
 * @throws NatsUnavailableError if no server answers, or the server rejects the credentials.
 */
export async function connectNats(options: ConnectNatsOptions): Promise<NatsConnection> {
  const { servers, token, user, password, seed, name = 'coxswain', inboxPrefix, connectTimeoutMs = 5_000 } = options;
  try {
    return await connect({
      servers: typeof servers === 'string' ? servers : [...servers],
      name,
      timeout: connectTimeoutMs,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 100,
      reconnectJitter: 100,
      pingInterval: CONNECTION_LIVENESS.pingMs,
      maxPingOut: CONNECTION_LIVENESS.unansweredMax,
      // Capturing a stack trace per request costs as much as the request.
      noAsyncTraces: true,
      ...(seed === undefined
        ? {
            ...(token === undefined ? {} : { token }),
            ...(user === undefined ? {} : { user, pass: password ?? '' }),
          }
        : { authenticator: nkeyAuthenticator(new TextEncoder().encode(seed)) }),
      ...(inboxPrefix === undefined ? {} : { inboxPrefix }),
    });
  } catch (cause) {
    throw new NatsUnavailableError(
      `no NATS server accepts this client at ${String(servers)}: ${(cause as Error).message}`,
      {
        cause,
      },
    );
  }
}

/**
 * Connects for one task, and closes the connection after it.
 * @throws the errors of connecting and of the task.
 */
export async function withConnection<T>(
  options: ConnectNatsOptions,
  task: (nc: NatsConnection) => Promise<T>,
): Promise<T> {
  const nc = await connectNats(options);
  try {
    return await task(nc);
  } finally {
    await nc.close();
  }
}

/** Logs when the connection is lost and when it is restored. @returns a function that ends it. */
export function logConnection(nc: NatsConnection, log: Log): () => void {
  return onConnectionChange(nc, {
    lost: () => log.warn({}, 'the connection to NATS is lost; reconnecting'),
    restored: () => log.info({}, 'the connection to NATS is restored'),
  });
}
