/** Watches the registry for changes. */
import { retryWhileUnavailable } from '@coxswain/bus';
import type { Log } from '@coxswain/ports';
import { STREAMS } from '@coxswain/protocol';
import { Kvm, type KvWatchEntry } from '@nats-io/kv';
import type { NatsConnection, QueuedIterator } from '@nats-io/nats-core';

/**
 * Watches the registry keys that match a pattern, such as `tools.>`: first their current values, then changes. While
 * NATS does not answer, it retries, so that a service can start during an outage.
 * @returns the entries, until the iterator is stopped or the connection ends.
 * @throws NatsUnavailableError after 45 seconds without an answer; at once if there is no registry.
 */
export function watchRegistry(nc: NatsConnection, key: string, log: Log): Promise<QueuedIterator<KvWatchEntry>> {
  return retryWhileUnavailable(async () => {
    const registry = await new Kvm(nc).open(STREAMS.registry);
    return registry.watch({ key });
  }, log);
}
