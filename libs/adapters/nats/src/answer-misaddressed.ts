/** Answers commands to subjects that no stream takes. */
import type { InboxHandlers } from '@coxswain/ports';
import { HEADERS, MISADDRESSED_COMMANDS } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';

/** The group of hosts: one of them answers a command. */
const QUEUE = 'cox-misaddressed';
const NOT_STORED = JSON.stringify({
  error: { code: 400, description: 'no session has this subject: cox.<tenant>.session.<id>.<verb>' },
});

/**
 * Answers each command that no stream takes once, by one of the hosts. The command is not stored.
 * @param handlers of the inbox; null while it is closed.
 * @returns a function that ends it.
 */
export function answerMisaddressed(nc: NatsConnection, handlers: () => InboxHandlers | null): () => void {
  const subscriptions = MISADDRESSED_COMMANDS.map((subject) =>
    nc.subscribe(subject, {
      queue: QUEUE,
      callback: (error, message) => {
        const open = handlers();
        if (error || !open) return;
        // A sender that waits for the acknowledgement of the store gets the error of a stream.
        if (message.reply) message.respond(NOT_STORED);
        const receiptTo = message.headers?.get(HEADERS.receiptTo) || undefined;
        open.stray({ subject: message.subject, seq: 0, receiptTo, ack: () => undefined });
      },
    }),
  );
  return () => {
    for (const subscription of subscriptions) subscription.unsubscribe();
  };
}
