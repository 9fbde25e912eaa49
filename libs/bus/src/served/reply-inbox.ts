/** The inbox of a host for answers about requests: reports of instances, and "no responders" of the server. */
import { randomBytes } from 'node:crypto';
import { SERVED_BOUNDS, WorkReport } from '@coxswain/protocol';
import { createInbox, type Msg, type NatsConnection } from '@nats-io/nats-core';
import { STATUS, statusOf } from '../status.ts';
import { valueIn } from '../value-in.ts';
import { inboxPrefixOf } from '../wire.ts';

/** The message that an answer belongs to, as the last token of its reply subject. */
export const SENT = { request: 'q', attach: 'a', start: 's', probe: 'p' } as const;

/** Receives the answers about one request. */
export interface Receiver {
  /** The idempotency key of the request. */
  readonly key: string;
  onReport(report: WorkReport): void;
  /** A report is too large, invalid, or about another request. */
  onInvalid?(message: Msg): void;
  /** The server reports no responders. @param sent the message without responders, as in {@link SENT}. */
  onNoResponders?(sent: string | undefined): void;
}

/** The reply subjects of one request. */
export interface Replies {
  to(sent: (typeof SENT)[keyof typeof SENT]): string;
  /** Ignores further answers. */
  end(): void;
}

/** The inbox of a connection. */
export interface ReplyInbox {
  /** Creates reply subjects that cannot be derived from those of another request. */
  listen(receiver: Receiver): Replies;
  close(): void;
}

/** Maximum bytes of one report of an instance, including its common members. */
const REPORT_MAX_BYTES = SERVED_BOUNDS.outcomeMaxBytes + 4_096;

/** Creates the inbox of a connection. */
export function createReplyInbox(nc: Pick<NatsConnection, 'subscribe'>): ReplyInbox {
  const inbox = createInbox(inboxPrefixOf(nc));
  const receivers = new Map<string, Receiver>();
  const subscription = nc.subscribe(`${inbox}.*.*`, {
    callback(error, message) {
      const [token = '', sent] = message.subject.slice(inbox.length + 1).split('.');
      const receiver = receivers.get(token);
      if (error || !receiver) return;
      if (statusOf(message) === STATUS.noResponders) return receiver.onNoResponders?.(sent);
      const report = parseReport(message, receiver.key);
      if (report) receiver.onReport(report);
      else receiver.onInvalid?.(message);
    },
  });
  return {
    listen(receiver) {
      const token = randomBytes(12).toString('hex');
      receivers.set(token, receiver);
      return { to: (sent) => `${inbox}.${token}.${sent}`, end: () => void receivers.delete(token) };
    },
    close: () => subscription.unsubscribe(),
  };
}

/** Parses a report about a request. @returns null if it is too large, invalid, or about another request. */
export function parseReport(message: Msg, key: string): WorkReport | null {
  const report = valueIn(message.data, WorkReport, REPORT_MAX_BYTES);
  return report?.key === key ? report : null;
}
