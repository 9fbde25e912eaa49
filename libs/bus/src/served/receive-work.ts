/** Receives the requests and orders for the work of one instance, and reports to their senders. */
import {
  HEADERS,
  isAnswerSubject,
  isKeyOf,
  QUEUE_GROUPS,
  SERVED_BOUNDS,
  WorkOrder,
  type WorkReport,
  WorkRequest,
} from '@coxswain/protocol';
import type { Msg, NatsConnection, Subscription } from '@nats-io/nats-core';
import { type ValueSchema, valueIn } from '../value-in.ts';
import { type ServedAddress, subjectsOf } from './address.ts';
import type { SendReport } from './ledger.ts';
import { type Rate, RateLimit } from './rate-limit.ts';
import type { RunningWork } from './running-work.ts';

/** The receiver of an instance. */
export interface ReceivedWork {
  readonly at: ServedAddress;
  readonly instance: string;
  readonly work: Pick<RunningWork, 'take' | 'order'>;
  readonly problem: (message: string) => void;
}

/** The subscriptions of an instance, each created by its call. */
export interface WorkReceiver {
  /** Subscribes to the queue group, and to the instance's own subject. In this order. */
  subscribeToRequests(): Subscription[];
  subscribeToOrders(): Subscription[];
}

/** How often the log of an instance mentions invalid requests: anyone who may send requests can send these. */
const INVALID_LOGGED: Rate = { burst: 4, everyMs: 10_000 };

/** Creates the receiver of an instance. It subscribes to nothing yet. */
export function createWorkReceiver(
  nc: Pick<NatsConnection, 'publish' | 'subscribe'>,
  { at, instance, work, problem }: ReceivedWork,
): WorkReceiver {
  const { kind, tenant, name } = at;
  const { requests, orders, requestTo, orderTo } = subjectsOf(at);
  let invalidSubject = '';
  const logInvalid = new RateLimit(() => problem(`invalid request on ${invalidSubject}`), INVALID_LOGGED);

  // It has the subject only: the ledger keeps it after the end of the work, and the message has its arguments.
  const reportTo = (reply: string | undefined, key: string) => (what: object) => {
    const report = { v: 1, key, instance, ...what } as WorkReport;
    try {
      if (reply && isAnswerSubject(reply)) nc.publish(reply, JSON.stringify(report));
    } catch (error) {
      // The connection is closed: the host asks again.
      problem(`a report was not sent: ${(error as Error).message}`);
    }
  };
  const subscriptionFor = <T extends WorkRequest | WorkOrder>(
    schema: ValueSchema<T>,
    take: (data: T, send: SendReport, traceparent: string | undefined) => void,
    maxBytes?: number,
  ) => ({
    callback: (error: Error | null, message: Msg) => {
      if (error) return problem(`${name} cannot be served: ${error.message}`);
      const data = valueIn(message.data, schema, maxBytes);
      if (data && isKeyOf(data.key, tenant, data.session_id))
        take(data, reportTo(message.reply, data.key), message.headers?.get(HEADERS.traceparent) || undefined);
      else {
        invalidSubject = message.subject;
        logInvalid.request();
      }
    },
  });

  return {
    subscribeToRequests: () =>
      [requests, requestTo(instance)].map((subject) =>
        nc.subscribe(subject, {
          // Also for its own subject: a client that may subscribe without the group could read every request.
          queue: QUEUE_GROUPS[kind],
          ...subscriptionFor(WorkRequest, (request, send, traceparent) => work.take(request, send, traceparent)),
        }),
      ),
    subscribeToOrders: () =>
      [orders, orderTo(instance)].map((subject) =>
        nc.subscribe(
          subject,
          subscriptionFor(WorkOrder, (order, send) => work.order(order, send), SERVED_BOUNDS.orderMaxBytes),
        ),
      ),
  };
}
