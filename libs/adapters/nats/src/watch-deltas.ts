/** A session's deltas as they come. */
import type { Log } from '@coxswain/ports';
import { Delta, type SessionRef, subjects } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';

/**
 * Hands on each delta of a session. They are ephemeral: one may be lost, and the journal holds the whole. A message
 * that is no delta is logged and left out. Contract: `handler` returns at once and does not throw.
 * @returns a function that ends it.
 */
export function watchDeltas(
  nc: NatsConnection,
  ref: SessionRef,
  handler: (delta: Delta) => void,
  log: Log,
): () => void {
  const subject = subjects.deltas(ref);
  const subscription = nc.subscribe(subject, {
    callback(error, message) {
      if (error) {
        log.warn({ subject, error }, 'deltas cannot be received');
        return;
      }
      let value: unknown;
      try {
        value = message.json();
      } catch {
        // Not JSON: reported below as what it is, no delta.
      }
      const delta = Delta.safeParse(value);
      if (delta.success) handler(delta.data);
      else log.warn({ subject }, 'an invalid delta was ignored');
    },
  });
  return () => subscription.unsubscribe();
}
