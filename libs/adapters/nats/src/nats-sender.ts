/** The sender port: stores commands in the command stream. A command is durable when the promise resolves. */

import { answerOf, NatsRefusedError, NatsUnavailableError, type PublishAck, wireOf } from '@coxswain/bus';
import type { CommandSender } from '@coxswain/ports';
import { HEADERS, positionalCommandId, subjects } from '@coxswain/protocol';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { commandStreamIncarnation } from './command-stream.ts';

/**
 * Creates the sender port on this connection. After a NatsUnavailableError of `send` the command may be stored or not;
 * with a command id it is safe to send it again. After a NatsRefusedError it is not stored.
 * @throws NatsUnavailableError, NatsRefusedError; StreamNotThereError if the command stream does not exist.
 */
export async function createNatsSender(nc: NatsConnection): Promise<CommandSender> {
  const wire = wireOf(nc);
  const incarnation = await commandStreamIncarnation(wire);
  return {
    async send(ref, verb, payload, options = {}) {
      const { commandId, receiptTo, actor, traceparent, restricted } = options;
      const head = headers();
      if (commandId !== undefined) {
        head.append(HEADERS.commandId, commandId);
        head.append('Nats-Msg-Id', subjects.commandMessageId(ref, commandId));
      }
      if (receiptTo !== undefined) head.append(HEADERS.receiptTo, receiptTo);
      if (actor !== undefined) head.append(HEADERS.actor, actor);
      if (restricted) head.append(HEADERS.restricted, '1');
      if (traceparent !== undefined) head.append(HEADERS.traceparent, traceparent);
      const answer = answerOf<PublishAck>(
        await wire.request(subjects.command(ref, verb), payload, head.keys().length > 0 ? head : undefined),
      );
      if (answer.error?.code === 503) throw new NatsUnavailableError(answer.error.description);
      if (answer.error) throw new NatsRefusedError(`storing the command ${verb}`, answer.error);
      if (answer.seq === undefined) throw new NatsUnavailableError('the acknowledgement names no position');
      return { seq: answer.seq, commandId: commandId ?? positionalCommandId(incarnation, answer.seq) };
    },
  };
}
