/** Rejects commands whose subject names no session. */
import type { Clock, CommandInbox, Log, Publisher, UnroutableCommand } from '@coxswain/ports';
import { cutText, isReceiptSubject, positionalCommandId, publishedAs, unroutableField } from '@coxswain/protocol';
import { RequestRates } from './request-rates.ts';

/**
 * Warnings about the commands of one tenant: at once, and per second after that. No quota limits these commands, so their
 * sender must not fill the log of a host.
 */
const WARNINGS_AT_ONCE = 8;
const WARNINGS_PER_SECOND = 0.1;
/** Maximum number of tenants with a rate of their own, and of characters of their names. */
const TENANTS_MAX = 1_000;
const TENANT_MAX_CHARS = 64;

/** The ports of the rejection. */
export interface UnroutablePorts {
  readonly inbox: CommandInbox;
  readonly publisher: Publisher;
  readonly log: Log;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/**
 * Creates the handler of unroutable commands. It logs each, sends a receipt where its sender may get one, and
 * acknowledges the delivery. Beyond a rate, the lines about a tenant have the level `debug`.
 */
export function createUnroutableHandler({
  inbox,
  publisher,
  log,
  clock,
}: UnroutablePorts): (command: UnroutableCommand) => void {
  const rates = new RequestRates(WARNINGS_AT_ONCE, WARNINGS_PER_SECOND, TENANTS_MAX, () => clock.monotonicMs());
  return (command) => {
    const published = publishedAs(command.subject);
    const subject = shortened(published);
    const tenant = published.split('.')[1] ?? '';
    const level = rates.take(tenant.slice(0, TENANT_MAX_CHARS)) === 0 ? 'warn' : 'debug';
    log[level]({ subject, seq: command.seq }, 'a command with an invalid subject was rejected');
    if (command.receiptTo && isReceiptSubject(command.receiptTo, tenant)) {
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
  };
}

/** A subject for people. Of one with more than 200 characters, only the first 120 and the length. */
function shortened(subject: string): string {
  return subject.length <= 200 ? subject : `${cutText(subject, 120)}… (${subject.length} characters)`;
}
