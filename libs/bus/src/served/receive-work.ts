/** Receives the requests and orders for the work of one instance, and reports to their senders. */
import {
  ApprovalCheck,
  type ApprovalCheckAnswer,
  HEADERS,
  isAnswerSubject,
  isKeyOf,
  QUEUE_GROUPS,
  WorkOrder,
  type WorkReport,
  WorkRequest,
} from '@coxswain/protocol';
import type { Msg, NatsConnection, Subscription } from '@nats-io/nats-core';
import { type ServedAddress, subjectsOf } from './address.ts';
import type { RunningWork, SendReport } from './running-work.ts';

/** The receiver of an instance. */
export interface ReceivedWork {
  readonly at: ServedAddress;
  readonly instance: string;
  readonly work: RunningWork;
  readonly problem: (message: string) => void;
}

/** The subscriptions of an instance, each created by its call. */
export interface WorkReceiver {
  /** Subscribes to the queue group, and to the instance's own subject. In this order. */
  subscribeToRequests(): Subscription[];
  subscribeToOrders(): Subscription[];
}

/** Creates the receiver of an instance. It subscribes to nothing yet. */
export function createWorkReceiver(
  nc: Pick<NatsConnection, 'publish' | 'subscribe' | 'isClosed'>,
  { at, instance, work, problem }: ReceivedWork,
): WorkReceiver {
  const { kind, tenant, name } = at;
  const { requests, orders, requestTo, orderTo } = subjectsOf(at);

  const reportTo = (message: Msg, key: string) => (what: object) => {
    const report = { v: 1, key, instance, ...what } as WorkReport;
    try {
      if (message.reply && isAnswerSubject(message.reply)) nc.publish(message.reply, JSON.stringify(report));
    } catch (error) {
      // The connection is closed: the host asks again.
      problem(`a report was not sent: ${(error as Error).message}`);
    }
  };
  const subscriptionFor = <T extends WorkRequest | WorkOrder>(
    schema: Schema<T>,
    take: (data: T, send: SendReport, traceparent: string | undefined) => void,
    other?: (message: Msg) => boolean,
  ) => ({
    callback: (error: Error | null, message: Msg) => {
      if (error) return problem(`${name} cannot be served: ${error.message}`);
      const data = parsed(message, schema);
      if (data && isKeyOf(data.key, tenant, data.session_id))
        take(data, reportTo(message, data.key), message.headers?.get(HEADERS.traceparent) || undefined);
      else if (!other?.(message)) problem(`invalid request on ${message.subject}`);
    },
  });

  /** @returns false if the message is not an approval check. */
  const checkApproval = (message: Msg): boolean => {
    const check = parsed(message, ApprovalCheck);
    if (!check) return false;
    void work.needsApproval(check).then((needs_approval) => {
      const answer: ApprovalCheckAnswer = { v: 1, needs_approval };
      if (message.reply && isAnswerSubject(message.reply) && !nc.isClosed())
        nc.publish(message.reply, JSON.stringify(answer));
    });
    return true;
  };

  return {
    subscribeToRequests: () =>
      [requests, requestTo(instance)].map((subject) =>
        nc.subscribe(subject, {
          // Also for its own subject: a client that may subscribe without the group could read every request.
          queue: QUEUE_GROUPS[kind],
          ...subscriptionFor(
            WorkRequest,
            (request, send, traceparent) => work.take(request, send, traceparent),
            checkApproval,
          ),
        }),
      ),
    subscribeToOrders: () =>
      [orders, orderTo(instance)].map((subject) =>
        nc.subscribe(
          subject,
          subscriptionFor(WorkOrder, (order, send) => work.order(order, send)),
        ),
      ),
  };
}

interface Schema<T> {
  safeParse(value: unknown): { readonly success: true; readonly data: T } | { readonly success: false };
}

function parsed<T>(message: Msg, schema: Schema<T>): T | null {
  try {
    const read = schema.safeParse(message.json());
    return read.success ? read.data : null;
  } catch {
    // Not JSON.
    return null;
  }
}
