/** Connects to NATS with errors that have a code. */
import { connectNats, StreamsMissingError } from '@coxswain/bus';
import { errors, type NatsConnection } from '@nats-io/nats-core';
import { BusNotPreparedError, InvalidOptionError } from './client-errors.ts';
import { type ConnectOptions, natsOptions } from './connection-options.ts';
import type { CommandBus } from './send-command.ts';

/**
 * Connects to NATS.
 * @throws InvalidOptionError; CoxswainError `nats_unreachable`.
 * @internal
 */
export async function connectedNats(options: ConnectOptions): Promise<NatsConnection> {
  try {
    return await connectNats(natsOptions(options));
  } catch (error) {
    const { cause } = error as Error;
    if (cause instanceof TypeError || cause instanceof errors.InvalidArgumentError)
      throw new InvalidOptionError(`NATS cannot be connected to with these options: ${cause.message}`, 'servers', {
        cause,
      });
    throw error;
  }
}

/** Throws the error of a service that cannot start. @throws BusNotPreparedError if there is no registry. @internal */
export function refuseUnprepared(error: unknown): never {
  throw error instanceof StreamsMissingError ? new BusNotPreparedError({ cause: error }) : error;
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
    const served = await serve({ nc });
    return {
      ...served,
      async stop() {
        try {
          await served.stop();
        } finally {
          await nc.close();
        }
      },
    };
  } catch (error) {
    await nc.close();
    throw error;
  }
}
