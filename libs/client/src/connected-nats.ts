/** Connects to NATS with errors that have a code. */
import { jetstream } from '@nats-io/jetstream';
import { errors } from '@nats-io/nats-core';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { CoxswainError, InvalidOptionError } from './client-errors.ts';
import { type ConnectOptions, natsOptions } from './connection-options.ts';
import type { CommandBus } from './send-command.ts';

/**
 * Connects to NATS and converts the errors of its library, which have no code.
 * @throws InvalidOptionError; CoxswainError `nats_unreachable`.
 * @internal
 */
export async function connectedNats(options: ConnectOptions): Promise<NatsConnection> {
  try {
    return await connect(natsOptions(options));
  } catch (error) {
    if (error instanceof CoxswainError) throw error;
    const { message } = error as Error;
    if (error instanceof TypeError || error instanceof errors.InvalidArgumentError)
      throw new InvalidOptionError(`NATS cannot be connected to with these options: ${message}`, 'servers', {
        cause: error,
      });
    const why = `no NATS server accepts this client: ${message}`;
    throw new CoxswainError('nats_unreachable', why, { cause: error });
  }
}

/**
 * Connects, and runs a service on that connection. The connection closes when the service stops or fails to start.
 * @throws the errors of {@link connectedNats} and `serve`.
 * @internal
 */
export async function servedOnOwnConnection<Served extends { stop(): Promise<void> }>(
  options: ConnectOptions,
  serve: (bus: CommandBus) => Promise<Served>,
): Promise<Served> {
  const nc = await connectedNats(options);
  try {
    const served = await serve({ nc, js: jetstream(nc), inboxPrefix: options.inboxPrefix });
    return {
      ...served,
      async stop() {
        await served.stop();
        await nc.close();
      },
    };
  } catch (error) {
    await nc.close();
    throw error;
  }
}

/** Resolves when a connection has ended permanently, with the reason as an error `nats_unreachable`. */
export async function closedForGood(nc: NatsConnection): Promise<CoxswainError> {
  const why = await nc.closed();
  const cause = why instanceof Error ? `: ${why.message}` : '';
  return new CoxswainError('nats_unreachable', `the bus no longer authorizes this user${cause}`, { cause: why });
}
