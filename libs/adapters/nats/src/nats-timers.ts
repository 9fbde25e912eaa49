/**
 * The timer port: message schedules on their own stream. The command stream sources the due messages from it. The
 * command stream itself accepts no schedules: otherwise a client that may only steer could make the server publish an
 * approval.
 */
import { NatsUnavailableError, storeMessage, streamInfo } from '@coxswain/bus';
import type { Timers } from '@coxswain/ports';
import { STREAMS, subjects } from '@coxswain/protocol';
import { headers, type NatsConnection } from '@nats-io/nats-core';

/** How long a fired message is kept until the command stream has sourced it. It only has to outlast an outage. */
const firedTtl = '24h';

/** Creates the timer port on this connection. `schedule` throws NatsUnavailableError, NatsRefusedError. */
export function createNatsTimers(nc: NatsConnection): Timers {
  return {
    async schedule(ref, timerId, atMs, payload) {
      const schedule = headers();
      schedule.append('Nats-Schedule', `@at ${new Date(atMs).toISOString()}`);
      schedule.append('Nats-Schedule-Target', subjects.timerDue(ref, timerId));
      schedule.append('Nats-Schedule-TTL', firedTtl);
      await storeMessage(nc, 'scheduling a timer', subjects.timerSchedule(ref, timerId), payload, schedule);
    },
  };
}

/** Reads the clock by which timers fire, milliseconds since 1970. @throws as {@link streamTimeMs}. */
export function timersTimeMs(nc: NatsConnection): Promise<number> {
  return streamTimeMs(nc, STREAMS.timers);
}

/**
 * Reads the time of a stream's leader.
 * @returns milliseconds since 1970, rounded down.
 * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError.
 */
export async function streamTimeMs(nc: NatsConnection, stream: string): Promise<number> {
  const timeMs = Date.parse((await streamInfo(nc, stream)).ts ?? '');
  if (Number.isNaN(timeMs)) throw new NatsUnavailableError(`${stream} does not say what time it is`);
  return timeMs;
}
