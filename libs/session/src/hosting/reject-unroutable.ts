/** Answers commands whose subject names no session. */
import type { CommandInbox, Log, Publisher, UnroutableCommand } from '@coxswain/ports';
import { cutText, isReceiptSubject, positionalCommandId, publishedAs, unroutableField } from '@coxswain/protocol';

/** Rejects an unroutable command: logs it, sends a receipt where its sender may get one, and acknowledges the delivery. */
export function rejectUnroutable(
  { inbox, publisher, log }: { readonly inbox: CommandInbox; readonly publisher: Publisher; readonly log: Log },
  command: UnroutableCommand,
): void {
  const published = publishedAs(command.subject);
  const subject = shortened(published);
  log.warn({ subject, seq: command.seq }, 'a command with an invalid subject was rejected');
  if (command.receiptTo && isReceiptSubject(command.receiptTo, published.split('.')[1] ?? '')) {
    publisher.receipt(command.receiptTo, {
      type: 'receipt',
      session_id: '',
      command_id: positionalCommandId(inbox.incarnation, command.seq),
      stage: 'rejected',
      code: 'invalid_id',
      message: `${subject} names no session: tenant, session and verb are 1 to 64 characters of A-Z a-z 0-9 _ -`,
      field: unroutableField(command.subject),
    });
  }
  command.ack();
}

/** A subject for people. Of one with more than 200 characters, only the first 120 and the length. */
function shortened(subject: string): string {
  return subject.length <= 200 ? subject : `${cutText(subject, 120)}… (${subject.length} characters)`;
}
