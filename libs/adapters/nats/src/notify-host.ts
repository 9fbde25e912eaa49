/** Makes the host of a session read the session's journal, by a command. The receipt of the command confirms it. */
import { inboxPrefixOf } from '@coxswain/bus';
import type { SessionRef } from '@coxswain/protocol';
import { createInbox, type NatsConnection, type Subscription } from '@nats-io/nats-core';
import { createNatsSender } from './nats-sender.ts';

/**
 * Timeout of the receipt, milliseconds. A live host reads at once. Without a live host, no host has the session in
 * memory.
 */
const ANSWER_TIMEOUT_MS = 3_000;

/**
 * Notifies the host of a deleted session, by a command `delete`. The host rejects it, because the session is deleted
 * already. Contract: does not reject. Resolves when a host has answered, or after three seconds.
 */
export async function notifyHost(nc: NatsConnection, ref: SessionRef): Promise<void> {
  let answered: () => void = () => undefined;
  const answer = new Promise<void>((resolve) => {
    answered = resolve;
  });
  const timer = setTimeout(() => answered(), ANSWER_TIMEOUT_MS);
  let subscription: Subscription | undefined;
  try {
    const receiptTo = createInbox(inboxPrefixOf(nc));
    subscription = nc.subscribe(receiptTo, { max: 1, callback: () => answered() });
    const sender = await createNatsSender(nc);
    await sender.send(ref, 'delete', new TextEncoder().encode('{}'), { receiptTo });
    await answer;
  } catch {
    // The command could not be stored, or the connection is closed. A host that has the session notices the deletion at its next append.
  } finally {
    clearTimeout(timer);
    subscription?.unsubscribe();
  }
}
