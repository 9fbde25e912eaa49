/** Whether what sessions are kept in can keep anything just now. */
import { STREAMS } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { answerOf, failureOf } from './nats-status.ts';
import { wireOf } from './wire.ts';

/**
 * Resolves when the leader of the command stream has answered. A server that answers by itself may be cut off from the
 * others, or have switched its store off, as it does when the disk is full.
 * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError.
 */
export async function storeAnswers(nc: NatsConnection): Promise<void> {
  const { error } = answerOf(await wireOf(nc).request(`$JS.API.STREAM.INFO.${STREAMS.commands}`, new Uint8Array()));
  if (error) throw failureOf('asking for the command stream', error);
}
