/**
 * Stalled consumers: their deliveries are not acknowledged, and they do not redeliver them. After a network partition
 * of a cluster, the acknowledgements of some deliveries were lost together with their redelivery (nats-server 2.15.1).
 * Sessions have already recorded these commands in their journals, but the commands fill the stream. At
 * `max_ack_pending` of them the consumer delivers nothing. Such a consumer is deleted and recreated.
 */
import { wireOf } from '@coxswain/bus';
import type { Log } from '@coxswain/ports';
import type { NatsConnection } from '@nats-io/nats-core';
import { type ConsumerState, listConsumers, renewConsumers } from './command-consumers.ts';

/** Interval of the checks, milliseconds: several times the time after which an unacknowledged delivery is repeated. */
const CHECK_INTERVAL_MS = 15_000;

/** Recreates the stalled consumers of one host. */
export interface StalledConsumers {
  /**
   * Checks the consumers now. Does not reject: a failed check is logged.
   * @returns the names of the recreated consumers.
   */
  check(): Promise<readonly string[]>;
  stop(): void;
}

/**
 * Starts periodic checks.
 * @param mine the consumers that this host pulls from now. Other hosts check the others.
 * @param intervalMs interval of the checks, milliseconds. A consumer without a change between two checks is stalled.
 */
export function watchForStalledConsumers(
  nc: NatsConnection,
  log: Log,
  mine: () => ReadonlySet<string>,
  intervalMs = CHECK_INTERVAL_MS,
): StalledConsumers {
  let before: ReadonlyMap<string, ConsumerState> = new Map();
  let isChecking = false;

  async function check(): Promise<readonly string[]> {
    if (isChecking || nc.isClosed()) return [];
    isChecking = true;
    try {
      const now = await listConsumers(wireOf(nc));
      const names = [...mine()].filter((name) => isStalled(before.get(name), now.get(name)));
      before = now;
      if (names.length === 0) return names;
      await renewConsumers(nc, names);
      log.warn({ consumers: names }, 'stalled consumers of the command stream were recreated');
      return names;
    } catch (error) {
      log.debug({ error: (error as Error).message }, 'consumers of the command stream could not be read');
      return [];
    } finally {
      isChecking = false;
    }
  }

  const timer = setInterval(() => void check(), intervalMs);
  timer.unref();
  return { check, stop: () => clearInterval(timer) };
}

function isStalled(before: ConsumerState | undefined, now: ConsumerState | undefined): boolean {
  return (
    now !== undefined &&
    now.num_ack_pending > 0 &&
    before?.num_ack_pending === now.num_ack_pending &&
    before.delivered.consumer_seq === now.delivered.consumer_seq
  );
}
