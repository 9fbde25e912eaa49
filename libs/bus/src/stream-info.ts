/** Reads the state of a stream. */
import type { StreamInfo } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { answerOf, failureOf } from './status.ts';
import { wireOf } from './wire.ts';

/**
 * Reads the configuration and the state of a stream, from its leader.
 * @param filter adds the number of messages of each subject that it matches, up to the server's limit of a page.
 * @throws StreamNotFoundError, NatsUnavailableError, NatsRefusedError, NotPermittedError.
 */
export async function streamInfo(nc: NatsConnection, stream: string, filter?: string): Promise<StreamInfo> {
  const query = filter === undefined ? '' : JSON.stringify({ subjects_filter: filter });
  const answer = await wireOf(nc).request(`$JS.API.STREAM.INFO.${stream}`, new TextEncoder().encode(query));
  const { error, ...info } = answerOf<StreamInfo>(answer);
  if (error) throw failureOf(`asking about ${stream}`, error);
  return info as StreamInfo;
}
