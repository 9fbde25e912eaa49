/** Connects to NATS. */
import { CONNECTION_LIVENESS } from '@coxswain/protocol';
import { type NatsConnection, nkeyAuthenticator } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import type { ConnectNatsOptions } from './connect-options.ts';
import { NatsUnavailableError } from './errors.ts';

/**
 * Connects to NATS. After the first connection it reconnects indefinitely, also if the server stops answering pings.
 * Pending requests have their own timeouts.
 * @throws NatsUnavailableError if no server answers, or the server rejects the credentials. Its cause is the error of
 *   the NATS library.
 */
export async function connectNats(options: ConnectNatsOptions): Promise<NatsConnection> {
  const { servers, token, user, password, seed, tls, name, inboxPrefix, connectTimeoutMs } = options;
  try {
    return await connect({
      servers: typeof servers === 'string' ? servers : [...servers],
      name: name ?? 'coxswain',
      timeout: connectTimeoutMs ?? 5_000,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 100,
      reconnectJitter: 100,
      pingInterval: CONNECTION_LIVENESS.pingMs,
      maxPingOut: CONNECTION_LIVENESS.unansweredMax,
      // Capturing a stack trace per request costs as much as the request.
      noAsyncTraces: true,
      ...(tls ? { tls: {} } : {}),
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
      { cause },
    );
  }
}

/**
 * Waits until a connection closes permanently. Lost connections are retried indefinitely, so this means that the server
 * no longer authorizes this user. Contract: the caller itself does not close the connection meanwhile.
 * @returns the error to report.
 */
export async function awaitPermanentClose(nc: NatsConnection): Promise<NatsUnavailableError> {
  const why = await nc.closed();
  const text = why instanceof Error ? `: ${why.message}` : '';
  return new NatsUnavailableError(`the bus no longer authorizes this user${text}`, { cause: why, isFinal: true });
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
