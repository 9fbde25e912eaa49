/** The time of the server that leads a stream: it stamps the stream's messages and fires its schedules. */
import type { NatsConnection } from '@nats-io/nats-core';
import { answerOf, failureOf, NatsUnavailableError } from './nats-status.ts';
import { wireOf } from './wire.ts';

/**
 * Asks the leader of a stream for its time.
 * @returns milliseconds since 1970, rounded down.
 * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError.
 */
export async function streamTimeMs(nc: NatsConnection, stream: string): Promise<number> {
  const answer = await wireOf(nc).request(`$JS.API.STREAM.INFO.${stream}`, new Uint8Array());
  const { error, ts } = answerOf<{ readonly ts?: string }>(answer);
  if (error) throw failureOf(`asking ${stream} for its time`, error);
  const timeMs = Date.parse(ts ?? '');
  if (Number.isNaN(timeMs)) throw new NatsUnavailableError(`${stream} does not say what time it is`);
  return timeMs;
}
