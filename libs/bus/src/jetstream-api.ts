/** Requests to the API of JetStream. */
import type { StreamInfo } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { failureOf, StreamNotFoundError } from './errors.ts';
import { answerOf } from './status.ts';
import { type Wire, wireOf } from './wire.ts';

/**
 * Sends a request to the API of JetStream.
 * @param what describes the action in errors, such as `purging COX_TIMERS`.
 * @param api the subject after `$JS.API.`.
 * @throws StreamNotFoundError, NatsUnavailableError, NatsRefusedError, NotPermittedError.
 */
export async function askJetStream<T extends object>(
  wire: Wire,
  what: string,
  api: string,
  query: object | null = null,
): Promise<T> {
  const payload = new TextEncoder().encode(query === null ? '' : JSON.stringify(query));
  const answer = answerOf<T>(await wire.request(`$JS.API.${api}`, payload));
  if (answer.error) throw failureOf(what, answer.error);
  return answer;
}

/**
 * Reads the configuration and the state of a stream, from its leader.
 * @param filter adds the number of messages of each subject that it matches, up to the server's limit of a page.
 * @throws as {@link askJetStream}.
 */
export function streamInfo(nc: NatsConnection, stream: string, filter?: string): Promise<StreamInfo> {
  const query = filter === undefined ? null : { subjects_filter: filter };
  return askJetStream(wireOf(nc), `asking about ${stream}`, `STREAM.INFO.${stream}`, query);
}

/** The answer to a request, or null if its stream does not exist. @throws the other errors of the request. */
export async function nullIfNoStream<T>(request: Promise<T>): Promise<T | null> {
  return request.catch((error: unknown) => {
    if (error instanceof StreamNotFoundError) return null;
    throw error;
  });
}
