/** Answers misaddressed commands: their subjects match no stream. */
import type { InboxHandlers } from '@coxswain/ports';
import { HEADERS, MISADDRESSED_COMMANDS } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';

/** The queue group of hosts: one host answers each command. */
const QUEUE = 'cox-misaddressed';
const NOT_STORED = JSON.stringify({
  error: { code: 400, description: 'no session has this subject: cox.<tenant>.session.<id>.<verb>' },
});

/**
 * Answers misaddressed commands. The queue group selects one host per command. The command is not stored.
 * @param handlers the handlers of the inbox; null while it is closed, and then commands are ignored.
 * @returns a function that unsubscribes.
 */
export function answerMisaddressed(nc: NatsConnection, handlers: () => InboxHandlers | null): () => void {
  const subscriptions = MISADDRESSED_COMMANDS.map((subject) =>
    nc.subscribe(subject, {
      queue: QUEUE,
      callback: (error, message) => {
        const open = handlers();
        if (error || !open) return;
        // A sender that waits for a stream's acknowledgement gets an error in the same format.
        if (message.reply) message.respond(NOT_STORED);
        const receiptTo = message.headers?.get(HEADERS.receiptTo) || undefined;
        open.unroutable({ subject: message.subject, seq: 0, receiptTo, ack: () => undefined });
      },
    }),
  );
  return () => {
    for (const subscription of subscriptions) subscription.unsubscribe();
  };
}
