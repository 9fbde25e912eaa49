/** The publisher port: sends deltas and receipts to subscribers. */
import type { Log, Publisher } from '@coxswain/ports';
import { type ApprovalNotice, cutText, isInboxSubject, subjects } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';

/**
 * Creates the publisher port on this connection. A message that cannot be sent is logged and dropped: it has no value
 * later.
 */
export function createNatsPublisher(nc: NatsConnection, log: Log): Publisher {
  const publish = (subject: string, message: object): void => {
    try {
      nc.publish(subject, JSON.stringify(message));
    } catch (error) {
      log.warn({ subject, error }, 'a message to subscribers was not sent');
    }
  };
  return {
    delta: (ref, delta) => publish(subjects.deltas(ref), delta),
    receipt(subject, receipt) {
      // The subject comes from a command: a receipt must not become a command of its own.
      if (isInboxSubject(subject)) publish(subject, receipt);
      else log.warn({ subject: cutText(subject, 200) }, 'a receipt was not sent: the subject is not an inbox');
    },
  };
}

/**
 * Notifies subscribers that a call waits for a human-in-the-loop approval.
 * @throws an error of the NATS client if the connection is closed.
 */
export function publishApprovalNotice(nc: NatsConnection, notice: ApprovalNotice): void {
  const { tenant, session_id } = notice.data;
  nc.publish(subjects.approvals(tenant, session_id), JSON.stringify(notice));
}
