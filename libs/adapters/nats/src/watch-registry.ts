/** What is announced on the bus, as it changes. */
import type { Log } from '@coxswain/ports';
import { STREAMS } from '@coxswain/protocol';
import { Kvm, type KvWatchEntry } from '@nats-io/kv';
import { errors, type NatsConnection, type QueuedIterator } from '@nats-io/nats-core';
import { NatsUnavailableError } from './nats-status.ts';
import { whenAnswered } from './when-answered.ts';

/**
 * Watches the keys of the registry that a pattern names, such as `tools.>`: first as they stand, then as they change. A bus that does not
 * answer just now is asked again: whoever starts meanwhile need not end.
 * @returns the entries, until somebody stops them or the connection ends.
 * @throws NatsUnavailableError where nobody has answered for 45 seconds; at once what the library throws where there is no registry.
 */
export function watchRegistry(nc: NatsConnection, key: string, log: Log): Promise<QueuedIterator<KvWatchEntry>> {
  return whenAnswered(async () => {
    try {
      const registry = await new Kvm(nc).open(STREAMS.registry);
      return await registry.watch({ key });
    } catch (cause) {
      if (!(cause instanceof errors.TimeoutError)) throw cause;
      throw new NatsUnavailableError(`the registry cannot be watched: ${cause.message}`, { cause });
    }
  }, log);
}
