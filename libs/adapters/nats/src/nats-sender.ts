/** The sender port: stores commands in the command stream. A command is durable when the promise resolves. */
import { storeCommand } from '@coxswain/bus';
import type { CommandSender } from '@coxswain/ports';
import { positionalCommandId } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { commandStreamIncarnation } from './command-consumers.ts';

/**
 * Creates the sender port on this connection. `send` throws the errors of `storeCommand`.
 * @throws NatsUnavailableError, NatsRefusedError; StreamNotFoundError if the command stream does not exist.
 */
export async function createNatsSender(nc: NatsConnection): Promise<CommandSender> {
  const incarnation = await commandStreamIncarnation(nc);
  return {
    async send(ref, verb, payload, options = {}) {
      const { seq } = await storeCommand(nc, ref, verb, payload, options);
      return { seq, commandId: options.commandId ?? positionalCommandId(incarnation, seq) };
    },
  };
}
