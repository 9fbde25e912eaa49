/**
 * Consumers that have stopped: what they delivered is not acknowledged, and they do not deliver it again. In a cluster whose
 * network was parted the acknowledgements of some deliveries have been seen to get lost with their redelivery
 * (nats-server 2.15.1). What stands there is done with, in journals; but it fills the stream, and where as much of it
 * gathers as may be under way nothing is delivered any more. Such a consumer is ended and made anew.
 */
import type { Log } from '@coxswain/ports';
import type { NatsConnection } from '@nats-io/nats-core';
import { type ConsumerState, listConsumers, renewConsumers } from './command-consumers.ts';
import { wireOf } from './wire.ts';

/** So long apart consumers are looked at, milliseconds: several times what a delivery that is not acknowledged waits. */
const lookEveryMs = 15_000;

/** Looks after the consumers of one host. */
export interface StalledConsumers {
  /** Looks at once. @returns those that were made anew. Does not reject: what fails is tried again with the next look. */
  look(): Promise<readonly string[]>;
  stop(): void;
}

/**
 * Starts looking.
 * @param mine the consumers that this host pulls from now: others look after the others.
 * @param everyMs so long a consumer has to stand still; milliseconds.
 */
export function watchForStalledConsumers(
  nc: NatsConnection,
  log: Log,
  mine: () => ReadonlySet<string>,
  everyMs = lookEveryMs,
): StalledConsumers {
  let before: ReadonlyMap<string, ConsumerState> = new Map();
  let looking = false;

  async function look(): Promise<readonly string[]> {
    if (looking || nc.isClosed()) return [];
    looking = true;
    try {
      const now = await listConsumers(wireOf(nc));
      const names = [...mine()].filter((name) => stands(before.get(name), now.get(name)));
      before = now;
      if (names.length === 0) return names;
      await renewConsumers(nc, names);
      log.warn({ consumers: names }, 'stalled consumers of the command stream were recreated');
      return names;
    } catch (error) {
      log.debug({ error: (error as Error).message }, 'consumers of the command stream could not be looked at');
      return [];
    } finally {
      looking = false;
    }
  }

  const timer = setInterval(() => void look(), everyMs);
  timer.unref();
  return { look, stop: () => clearInterval(timer) };
}

function stands(before: ConsumerState | undefined, now: ConsumerState | undefined): boolean {
  return (
    now !== undefined &&
    now.num_ack_pending > 0 &&
    before?.num_ack_pending === now.num_ack_pending &&
    before.delivered.consumer_seq === now.delivered.consumer_seq
  );
}
