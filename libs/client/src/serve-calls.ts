/**
 * Serves calls of a tool or a persona: subscribes, sends heartbeats, announces again after a registry was lost, and
 * drains.
 *
 * V1: It subscribes before it announces.
 * V2: During a drain, an instance keeps its subscriptions for probes and aborts until its last call has ended.
 * V3: Stopping does not remove the announcement. Accepted requests are answered.
 */
import {
  HEADERS,
  isAnswerSubject,
  isKeyOf,
  type TenantId,
  TOOL_LIVENESS,
  ToolApprovalAsked,
  type ToolApprovalSaid,
  ToolAsked,
  type ToolBeat,
  ToolOrder,
  type ToolSaid,
} from '@coxswain/protocol';
import type { Msg, Subscription } from '@nats-io/nats-core';
import type { CommandBus } from './send-command.ts';
import type { ToolCalls } from './tool-calls.ts';

/** The calls to serve, and their subjects. */
export interface ServedCalls {
  readonly tenant: TenantId;
  /** The name for messages. */
  readonly name: string;
  readonly instance: string;
  readonly calls: ToolCalls;
  /** The subjects of requests: one for the queue group, one for this instance; and the name of the group. */
  readonly asked: { readonly subject: string; readonly own: string; readonly queue: string };
  /** The subjects of orders about calls. */
  readonly orders: readonly string[];
  readonly heartbeatSubject: string;
  /** Builds a heartbeat. */
  heartbeat(state: ToolBeat['state']): object;
  /** Announces the service. `where_missing`: keeps an existing announcement. */
  announce(when: 'always' | 'where_missing'): Promise<unknown>;
  readonly problem: (message: string) => void;
  /** The time limit of running calls during a stop, in milliseconds. */
  readonly drainMs: number;
  /** Whether it starts without accepting calls, until {@link ServingCalls.setServing}. */
  readonly startsInStandby?: boolean;
  /** Called when it accepts no further requests. */
  readonly onDraining?: () => void;
  /** Awaited after its calls have ended, before it sends its last heartbeat. */
  readonly onDrained?: () => Promise<void>;
}

/** A running service. */
export interface ServingCalls {
  /** Takes no more calls. Resolves when the accepted ones have ended, at most `drainMs` and five seconds later. */
  stop(): Promise<void>;
  /**
   * Takes calls, or stands by: running calls end here. Repeating it does nothing, and neither does a call after a stop.
   */
  setServing(serves: boolean): Promise<void>;
  /** Sends a heartbeat now. */
  sendHeartbeat(): void;
  /**
   * Reports this instance as gone although calls run: hosts treat their outcomes as unknown.
   * @returns the number of calls.
   */
  abandon(): number;
}

/** The time between aborting the calls and abandoning them, at the end of a drain. */
const ABORT_GRACE_MS = 5_000;
/** One for each subscription, and some more. */
const EARLY_MAX = 16;

/**
 * Serves until it is stopped.
 * @throws errors of the announcement.
 */
export async function serveCalls({ nc }: CommandBus, served: ServedCalls): Promise<ServingCalls> {
  const { tenant, name, instance, calls } = served;
  let state: ToolBeat['state'] = served.startsInStandby ? 'standby' : 'serving';
  /** Problems during the start, reported only after a successful start: a failed start has its own error. */
  let early: string[] | null = [];
  const problem = (message: string) => {
    if (early === null) served.problem(message);
    else if (early.length < EARLY_MAX) early.push(message);
  };

  const answerTo = (message: Msg, key: string) => (what: object) => {
    const said = { v: 1, key, instance, ...what } as ToolSaid;
    try {
      if (message.reply && isAnswerSubject(message.reply)) nc.publish(message.reply, JSON.stringify(said));
    } catch (error) {
      // The connection is closed: the host asks again.
      problem(`an answer was not sent: ${(error as Error).message}`);
    }
  };
  const subscriptionFor = <T extends ToolAsked | ToolOrder>(
    schema: Schema<T>,
    take: (data: T, answer: (what: object) => void, traceparent: string | undefined) => void,
    other?: (message: Msg) => boolean,
  ) => ({
    callback: (error: Error | null, message: Msg) => {
      if (error) return problem(`${name} cannot be served: ${error.message}`);
      const data = questionIn(message, schema);
      if (data && isKeyOf(data.key, tenant, data.session_id))
        take(data, answerTo(message, data.key), message.headers?.get(HEADERS.traceparent) || undefined);
      else if (!other?.(message)) problem(`invalid request on ${message.subject}`);
    },
  });

  /** @returns false if the message is not a question about an approval. */
  const answerApproval = (message: Msg): boolean => {
    const asked = questionIn(message, ToolApprovalAsked);
    if (!asked) return false;
    void calls.needsApproval(asked).then((needs_approval) => {
      const said: ToolApprovalSaid = { v: 1, needs_approval };
      if (message.reply && isAnswerSubject(message.reply) && !nc.isClosed())
        nc.publish(message.reply, JSON.stringify(said));
    });
    return true;
  };

  const subscribeToRequests = () =>
    [served.asked.subject, served.asked.own].map((subject) =>
      nc.subscribe(subject, {
        // Also for its own subject: a client that may subscribe without the group could read every request.
        queue: served.asked.queue,
        ...subscriptionFor(
          ToolAsked,
          (asked, answer, traceparent) => calls.ask(asked, answer, traceparent),
          answerApproval,
        ),
      }),
    );
  let questions: Subscription[] = served.startsInStandby ? [] : subscribeToRequests();
  const orders = served.orders.map((subject) =>
    nc.subscribe(
      subject,
      subscriptionFor(ToolOrder, (order, answer) => calls.order(order, answer)),
    ),
  );
  const drain = (subscriptions: readonly Subscription[]) =>
    Promise.all(subscriptions.map((one) => (one.isClosed() ? undefined : one.drain())));
  const unsubscribeAll = async () => {
    await drain([...questions, ...orders]);
  };
  const sendHeartbeat = () => {
    try {
      nc.publish(served.heartbeatSubject, JSON.stringify(served.heartbeat(state)));
    } catch {
      // The connection is closed: hosts miss the heartbeat, which is correct.
      return;
    }
  };
  const announceAgain = () =>
    served.announce('where_missing').catch((error: Error) => problem(`${name} was not announced: ${error.message}`));

  try {
    await nc.flush();
    await served.announce(served.startsInStandby ? 'where_missing' : 'always');
  } catch (error) {
    await unsubscribeAll();
    throw error;
  }
  for (const message of early) served.problem(message);
  early = null;
  sendHeartbeat();
  const beats = setInterval(sendHeartbeat, TOOL_LIVENESS.beatMs);
  // A new server may have an empty registry.
  const status = nc.status();
  void (async () => {
    for await (const { type } of status) if (type === 'reconnect' && state === 'serving') void announceAgain();
  })();

  return {
    abandon() {
      clearInterval(beats);
      state = 'gone';
      sendHeartbeat();
      for (const one of [...questions, ...orders]) if (!one.isClosed()) one.unsubscribe();
      return calls.running;
    },
    sendHeartbeat,
    async setServing(wanted) {
      if (wanted && state === 'standby') {
        state = 'serving';
        questions = subscribeToRequests();
        await nc.flush();
        await announceAgain();
        sendHeartbeat();
      } else if (!wanted && state === 'serving') {
        state = 'standby';
        // Messages that the server has already sent are accepted and run. Then the new state is reported.
        await drain(questions);
        questions = [];
        sendHeartbeat();
      }
    },
    async stop() {
      state = 'draining';
      sendHeartbeat();
      // Messages that the server has already sent are accepted and run.
      await drain(questions);
      served.onDraining?.();
      // A closed connection cannot send outcomes: there is nothing to wait for.
      const drainMs = nc.isClosed() ? 0 : served.drainMs;
      const late = setTimeout(() => calls.abortAll('its process is stopping'), drainMs);
      let giveUp: NodeJS.Timeout | undefined;
      const givenUp = new Promise<void>((resolve) => {
        giveUp = setTimeout(resolve, drainMs + ABORT_GRACE_MS);
      });
      await Promise.race([calls.drain(), givenUp]);
      clearTimeout(late);
      clearTimeout(giveUp);
      await served.onDrained?.();
      clearInterval(beats);
      state = 'gone';
      sendHeartbeat();
      await unsubscribeAll();
      if (!nc.isClosed()) await nc.flush();
    },
  };
}

interface Schema<T> {
  safeParse(value: unknown): { readonly success: true; readonly data: T } | { readonly success: false };
}

function questionIn<T>(message: Msg, schema: Schema<T>): T | null {
  try {
    const parsed = schema.safeParse(message.json());
    return parsed.success ? parsed.data : null;
  } catch {
    // Not JSON.
    return null;
  }
}
