/** The publisher port: deltas and receipts to whoever listens. */
import type { Log, Publisher } from '@coxswain/ports';
import { type ApprovalNotice, cutText, isInboxSubject, subjects } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';

/** A publisher on this connection. What cannot be sent is logged and dropped: it would tell nobody anything later. */
export function createNatsPublisher(nc: NatsConnection, log: Log): Publisher {
  const publish = (subject: string, message: object): void => {
    try {
      nc.publish(subject, JSON.stringify(message));
    } catch (error) {
      log.warn({ subject, error }, 'a message to watchers was not sent');
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

/** Tells whoever listens that a call waits for a person. Throws where the connection is closed. */
export function tellApproval(nc: NatsConnection, notice: ApprovalNotice): void {
  const { tenant, session_id } = notice.data;
  nc.publish(subjects.approvals(tenant, session_id), JSON.stringify(notice));
}
