/** Reads the incarnation of the command stream. */
import { streamInfo } from '@coxswain/bus';
import { STREAMS } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';

/** The command stream's name and its creation time, milliseconds since 1970, as a decimal string. */
export interface CommandStreamIncarnation {
  readonly stream: string;
  readonly created: string;
}

/**
 * Reads the command stream's incarnation.
 * @throws NatsUnavailableError, NatsRefusedError; StreamNotFoundError if the stream does not exist.
 */
export async function commandStreamIncarnation(nc: NatsConnection): Promise<CommandStreamIncarnation> {
  const { created } = await streamInfo(nc, STREAMS.commands);
  return { stream: STREAMS.commands, created: String(Date.parse(created)) };
}
