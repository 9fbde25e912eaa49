/** Connects a service to NATS. */
import { CONNECTION_LIVENESS } from '@coxswain/protocol';
import { type NatsConnection, nkeyAuthenticator } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import type { ConnectNatsOptions } from './bus-address.ts';
import { NatsUnavailableError } from './nats-status.ts';

/**
 * Resolves when a connection that nobody here has closed is over for good, with why: the server does not let this user in any
 * more. Where the server is merely away a connection is tried again for as long as it takes.
 */
export async function lostForGood(nc: NatsConnection): Promise<Error> {
  const why = await nc.closed();
  const cause = why instanceof Error ? `: ${why.message}` : '';
  return new NatsUnavailableError(`the bus no longer authorizes this user${cause}`);
}

/**
 * Connects. Once connected it reconnects for as long as it takes, also from a server that says nothing any more; what
 * waits meanwhile has bounds of its own.
 * @throws NatsUnavailableError when no server answers, or the server does not let us in.
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
      // A stack per request costs as much as the request.
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
 * @throws what connecting and the task throw.
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
