/**
 * The serving side of served work, the same for tools, personas and hooks: subscribes, sends heartbeats, announces again
 * after a registry was lost, and drains.
 *
 * SERVE-1  It subscribes before it announces.
 * SERVE-2  During a drain, an instance keeps its subscriptions for probes and aborts until its last request has ended.
 * SERVE-3  Stopping does not remove the announcement. Accepted requests are answered.
 * SERVE-4  After a suspension, no call or step starts until the socket is read: its abort may be among the messages.
 */
import { type Heartbeat, SERVED_LIVENESS, subjects } from '@coxswain/protocol';
import type { NatsConnection, Subscription } from '@nats-io/nats-core';
import { onConnectionChange } from '../connection-changes.ts';
import { NatsUnavailableError } from '../errors.ts';
import type { ServedAddress } from './address.ts';
import { createWorkReceiver } from './receive-work.ts';
import type { RunningWork } from './running-work.ts';

/** The work to serve, and its announcement. */
export interface WorkService {
  readonly at: ServedAddress;
  readonly instance: string;
  readonly work: RunningWork;
  /** The members of a heartbeat, except its state and the number of requests. */
  heartbeat(): Omit<Heartbeat, 'v' | 'state' | 'running'>;
  /** Announces the service. `where_missing`: keeps an existing announcement. */
  announce(when: 'always' | 'where_missing'): Promise<unknown>;
  readonly problem: (message: string) => void;
  /** The time limit of running requests during a stop, in milliseconds. */
  readonly drainMs: number;
  /** Whether it starts without accepting requests, until {@link ServingWork.setServing}. */
  readonly startsInStandby?: boolean;
  /** Called when it accepts no further requests. */
  readonly onDraining?: () => void;
}

/** A running service. */
export interface ServingWork {
  /**
   * Takes no more requests. Resolves when the accepted ones have ended, at most `drainMs` and eight seconds later; at
   * once after {@link ServingWork.abandon}.
   * @throws NatsUnavailableError at the end, if the connection is lost: hosts miss the last heartbeat.
   */
  stop(): Promise<void>;
  /**
   * Takes requests, or stands by: running ones end here. Repeating it does nothing, and neither does a call after a stop.
   * Does not reject: while the connection is lost, the change takes effect when it is restored.
   */
  setServing(serves: boolean): Promise<void>;
  /** Sends a heartbeat now. */
  sendHeartbeat(): void;
  /**
   * Reports this instance as gone although requests run: hosts treat their outcomes as unknown.
   * @returns the number of requests.
   */
  abandon(): number;
}

/** The time between aborting the requests and abandoning them, at the end of a drain. */
const ABORT_GRACE_MS = 5_000;
/** The pause before a failed announcement is repeated. */
const ANNOUNCED_AGAIN_MS = 1_000;
/** Without a heartbeat for longer than this, a process counts as suspended: hosts may have moved its requests. Milliseconds. */
const SUSPENDED_MS = 2 * SERVED_LIVENESS.heartbeatMs;
/** Maximum wait for a confirmation of the server: none comes if the connection is lost. Milliseconds. */
const CONFIRMED_WITHIN_MS = 1_000;
/** One for each subscription, and some more. */
const EARLY_MAX = 16;

/**
 * Serves until it is stopped.
 * @throws errors of the announcement.
 */
export async function serveWork(nc: NatsConnection, served: WorkService): Promise<ServingWork> {
  const { at, instance, work } = served;
  const { kind, tenant, name } = at;
  let state: Heartbeat['state'] = served.startsInStandby ? 'standby' : 'serving';
  /** Problems during the start, reported only after a successful start: a failed start has its own error. */
  let early: string[] | null = [];
  const problem = (message: string) => {
    if (early === null) served.problem(message);
    else if (early.length < EARLY_MAX) early.push(message);
  };

  let aliveMs = performance.now();
  let socketRead: Promise<void> | null = null;
  /** Notes that this process runs, and whether it was suspended. */
  const noteAlive = () => {
    const nowMs = performance.now();
    if (nowMs - aliveMs > SUSPENDED_MS)
      socketRead ??= confirmed(nc.flush()).then(() => {
        socketRead = null;
      });
    aliveMs = nowMs;
  };
  const whenRead = (take: () => void) => {
    noteAlive();
    if (socketRead) void socketRead.then(take);
    else take();
  };
  const receiver = createWorkReceiver(nc, {
    at,
    instance,
    work: {
      take: (request, send, traceparent) => whenRead(() => work.take(request, send, traceparent)),
      order: (order, send) =>
        order.want === 'start' ? whenRead(() => work.order(order, send)) : work.order(order, send),
    },
    problem,
  });
  let requestSubscriptions: Subscription[] = served.startsInStandby ? [] : receiver.subscribeToRequests();
  const orders = receiver.subscribeToOrders();
  const drain = (subscriptions: readonly Subscription[]) =>
    confirmed(Promise.all(subscriptions.map((one) => (one.isClosed() ? undefined : one.drain()))));
  const unsubscribeAll = () => drain([...requestSubscriptions, ...orders]);
  const sendHeartbeat = () => {
    noteAlive();
    try {
      const heartbeat: Heartbeat = { v: 1, state, ...served.heartbeat(), running: work.running };
      nc.publish(subjects.heartbeat(kind, tenant, name, instance), JSON.stringify(heartbeat));
    } catch {
      // The connection is closed: hosts miss the heartbeat, which is correct.
    }
  };
  let announcing: NodeJS.Timeout | undefined;
  let lastFailure = '';
  // Retries until it succeeds: without the announcement of a hook, sessions do not ask a policy.
  const announceAgain = async (): Promise<void> => {
    clearTimeout(announcing);
    if (state !== 'serving') return;
    try {
      await served.announce('where_missing');
      lastFailure = '';
    } catch (error) {
      const { message } = error as Error;
      if (message !== lastFailure) problem(`${name} was not announced: ${message}`);
      lastFailure = message;
      if (nc.isClosed()) return;
      clearTimeout(announcing);
      announcing = setTimeout(() => void announceAgain(), ANNOUNCED_AGAIN_MS);
      announcing.unref();
    }
  };

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
  const heartbeats = setInterval(sendHeartbeat, SERVED_LIVENESS.heartbeatMs);
  // A new server may have an empty registry.
  const endListening = onConnectionChange(nc, { restored: () => void announceAgain() });
  const endTimers = () => {
    clearInterval(heartbeats);
    clearTimeout(announcing);
    endListening();
  };

  return {
    abandon() {
      endTimers();
      state = 'gone';
      sendHeartbeat();
      for (const one of [...requestSubscriptions, ...orders]) if (!one.isClosed()) one.unsubscribe();
      return work.running;
    },
    sendHeartbeat,
    async setServing(wanted) {
      if (wanted && state === 'standby') {
        state = 'serving';
        requestSubscriptions = receiver.subscribeToRequests();
        await confirmed(nc.flush());
        await announceAgain();
        sendHeartbeat();
      } else if (!wanted && state === 'serving') {
        state = 'standby';
        // Messages that the server has already sent are accepted and run. Then the new state is reported.
        await drain(requestSubscriptions);
        requestSubscriptions = [];
        sendHeartbeat();
      }
    },
    async stop() {
      // Hosts know that it is gone.
      if (state === 'gone') return;
      state = 'draining';
      sendHeartbeat();
      // Messages that the server has already sent are accepted and run. Its own subject stays: the steps that still run may
      // need the answers of its hooks.
      await drain(requestSubscriptions.slice(0, 1));
      served.onDraining?.();
      // A closed connection cannot send outcomes: there is nothing to wait for.
      const drainMs = nc.isClosed() ? 0 : served.drainMs;
      let timer: NodeJS.Timeout | undefined;
      const givenUp = new Promise<void>((resolve) => {
        timer = setTimeout(() => {
          work.abortAll('its process is stopping');
          timer = setTimeout(resolve, ABORT_GRACE_MS);
        }, drainMs);
      });
      await Promise.race([work.drain(), givenUp]);
      endTimers();
      state = 'gone';
      sendHeartbeat();
      await unsubscribeAll();
      await Promise.race([work.drain(), givenUp]);
      clearTimeout(timer);
      if (!nc.isClosed() && !(await confirmed(nc.flush()))) throw new NatsUnavailableError('the connection is lost');
    },
  };
}

/** Resolves with true when the server has confirmed something, else with false, at the latest after a second. */
export async function confirmed(confirmation: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), CONFIRMED_WITHIN_MS);
  });
  const isConfirmed = await Promise.race([confirmation.then(() => true).catch(() => false), late]);
  clearTimeout(timer);
  return isConfirmed;
}
