/**
 * Answers hook requests for a persona's own hooks, in the queue group of its instances. The subject contains the
 * version that the session has pinned.
 */
import {
  answerHook,
  HOOKS_ANSWERING_MAX,
  type HookCallbacks,
  hookUnavailable,
  observedHook,
  readHookQuestion,
  runHookHandler,
} from '@coxswain/handlers';
import {
  type AnyHandler,
  HEADERS,
  type HookRegistration,
  PERSONA_QUEUE_GROUP,
  type TenantId,
  type WorkObserver,
} from '@coxswain/protocol';
import type { Msg, NatsConnection } from '@nats-io/nats-core';

/** A hook and its function. */
export interface ServedHook {
  readonly registration: HookRegistration;
  readonly handler: AnyHandler;
}

/** A running service of hooks. */
export interface ServingHooks {
  /** Takes no more requests. Resolves when the accepted ones are answered. */
  stop(): Promise<void>;
}

/** The subjects of requests: one for the queue group, one for this instance. */
export interface HookSubjects {
  readonly shared: string;
  readonly own: string;
}

const FETCH_TIMEOUT_MS = 10_000;

/**
 * Answers hook requests until it is stopped, and reports first which instance answers. Without hooks it subscribes to
 * nothing.
 */
export function servePersonaHooks(
  nc: NatsConnection,
  tenant: TenantId,
  { shared, own }: HookSubjects,
  instance: string,
  hooks: readonly ServedHook[],
  problem: (message: string) => void,
  observer?: WorkObserver,
): ServingHooks {
  if (hooks.length === 0) return { stop: async () => undefined };
  const running = new Set<Promise<void>>();
  const callbacks = callbacksOver(nc);

  async function answer(message: Msg): Promise<void> {
    const asked = readHookQuestion(message.string(), (id) => hooks.some(({ registration }) => registration.id === id));
    if (!asked) return problem(`invalid request on ${message.subject}`);
    const found = hooks.find(({ registration: { id, point } }) => id === asked.hook && point === asked.point);
    const isBusy = running.size >= HOOKS_ANSWERING_MAX;
    const reply =
      found && !isBusy
        ? await answerHook(asked, tenant, found.registration, instance, callbacks, (question, signal) =>
            observedHook(observer, question, message.headers?.get(HEADERS.traceparent), () =>
              runHookHandler(found.handler, question, signal),
            ),
          )
        : hookUnavailable(
            asked,
            isBusy ? 'it has reached its limit of concurrent requests' : `it has no ${asked.hook} there`,
          );
    try {
      if (reply !== null) message.respond(reply);
    } catch (error) {
      // The connection is closed: the sender notices it, too.
      problem(`an answer was not sent: ${(error as Error).message}`);
    }
  }

  // Also for its own subject: a client that may subscribe without the group could read every request.
  const subscriptions = [shared, own].map((subject) =>
    nc.subscribe(subject, {
      queue: PERSONA_QUEUE_GROUP,
      callback: (error, message) => {
        if (error) return problem(`its hooks cannot be served: ${error.message}`);
        const one = answer(message).finally(() => running.delete(one));
        running.add(one);
      },
    }),
  );
  return {
    async stop() {
      await Promise.all(subscriptions.map((one) => (one.isClosed() ? undefined : one.drain())));
      await Promise.allSettled([...running]);
    },
  };
}

function callbacksOver(nc: NatsConnection): HookCallbacks {
  return {
    async fetch(subject, wanted) {
      const { data, headers } = await nc.request(subject, wanted, { timeout: FETCH_TIMEOUT_MS });
      return { part: data, total: Number(headers?.get(HEADERS.total)) };
    },
    tell: (subject, text) => nc.publish(subject, text),
  };
}
