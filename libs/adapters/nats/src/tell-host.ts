/** Has whoever has a session in memory look at its journal: by a command, whose answer says that somebody did. */
import type { SessionRef } from '@coxswain/protocol';
import { createInbox, type NatsConnection } from '@nats-io/nats-core';
import { createNatsSender } from './nats-sender.ts';
import { inboxPrefixOf } from './wire.ts';

/** A host that lives looks at once; where none lives, nobody has the session in memory. */
const ANSWERED_WITHIN_MS = 3_000;

/**
 * Tells the host of a deleted session. The command `delete` is refused by it, as the session is deleted already.
 * Contract: does not reject. Resolves when a host has answered, or none does within three seconds.
 */
export async function tellHost(nc: NatsConnection, ref: SessionRef): Promise<void> {
  const receiptTo = createInbox(inboxPrefixOf(nc));
  let answered: () => void = () => undefined;
  const answer = new Promise<void>((resolve) => {
    answered = resolve;
  });
  const subscription = nc.subscribe(receiptTo, { max: 1, callback: () => answered() });
  const timer = setTimeout(() => answered(), ANSWERED_WITHIN_MS);
  try {
    const sender = await createNatsSender(nc);
    await sender.send(ref, 'delete', new TextEncoder().encode('{}'), { receiptTo });
    await answer;
  } catch {
    // It could not be stored: a host that has the session learns of it when it next appends.
  } finally {
    clearTimeout(timer);
    subscription.unsubscribe();
  }
}
