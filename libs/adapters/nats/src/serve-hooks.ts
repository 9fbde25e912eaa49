/**
 * Serves hook handlers on NATS: announces them, sends heartbeats, and answers in a queue group.
 *
 * V1: It subscribes before it announces. After a new announcement it keeps serving removed hooks for a while.
 * V2: An announcement replaces all registrations of the service, in one conditional write.
 * V3: Stopping does not remove the registrations. Open questions are answered first.
 */
import { wireOf } from '@coxswain/bus';
import {
  answerHook,
  confirmHook,
  HOOKS_ANSWERING_MAX,
  type HookCallbacks,
  hookUnavailable,
  observedHook,
  readHookQuestion,
} from '@coxswain/handlers';
import type { HookHandlers, Log } from '@coxswain/ports';
import {
  HEADERS,
  HOOK_LIVENESS,
  HOOK_QUEUE_GROUP,
  type HookAnnouncement,
  type HookAsked,
  HookServiceName,
  parseHookService,
  readId,
  STREAMS,
  subjects,
  TenantId,
  type WorkObserver,
} from '@coxswain/protocol';
import { type Msg, type NatsConnection, nuid, type Subscription } from '@nats-io/nats-core';
import { announce, idsOf, keepAnnounced, refuseTaken } from './announce-hooks.ts';
import { ensureBuckets } from './ensure-streams.ts';
import { readHookServicesOf, registeredHooksOf } from './hook-registry-key.ts';
import { beatOf } from './nats-hooks.ts';
import { replaceKey } from './registry-keys.ts';
import { readTenantKeys } from './tenant-keys.ts';

/** The handlers to serve, and the tenant and service that they belong to. */
export interface ServeHooksOptions {
  readonly tenant: string;
  readonly service: string;
  readonly handlers: HookHandlers;
  /** Observes each answered question, for traces and metrics. */
  readonly observer?: WorkObserver | undefined;
}

/** A running instance of a hook service. */
export interface ServedHooks {
  /** The id of this instance. */
  readonly instance: string;
  /** Replaces the handlers. @throws as {@link serveHooks}; then the previous handlers stay in service. */
  update(handlers: HookHandlers): Promise<void>;
  /** Takes no more questions. Resolves when the open ones are answered. */
  stop(): Promise<void>;
}

/**
 * How long removed hooks are still served, milliseconds: sessions may ask them until they know the new registrations.
 */
const FORMER_SERVED_MS = 10_000;

/**
 * Announces handlers and serves them until {@link ServedHooks.stop}.
 * @throws HookIdTakenError, InvalidIdError for a name, NatsUnavailableError, NatsRefusedError,
 *   StreamConfigMismatchError.
 */
export async function serveHooks(nc: NatsConnection, log: Log, options: ServeHooksOptions): Promise<ServedHooks> {
  const tenant = readId(TenantId, 'tenant', options.tenant);
  const service = readId(HookServiceName, 'service', options.service);
  await ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]);
  const instance = nuid.next();
  const callbacks = callbacksOver(nc);
  const subscriptions = new Map<string, readonly Subscription[]>();
  const running = new Set<Promise<void>>();
  let current = options.handlers;
  let former: HookHandlers | null = null;
  let forgetting: NodeJS.Timeout | undefined;

  const served = ({ hook, point }: HookAsked) => {
    for (const handlers of [current, former]) {
      const registration = handlers?.table().find((one) => one.id === hook && one.point === point);
      if (handlers && registration) return { handlers, registration };
    }
    return null;
  };

  async function answer(id: string, message: Msg): Promise<void> {
    const question = readHookQuestion(message.string(), (hook) => hook === id);
    if (!question) return log.warn({ subject: message.subject }, 'invalid request');
    const found = served(question);
    const busy = running.size >= HOOKS_ANSWERING_MAX ? 'it answers as many questions as it can' : null;
    // The host then knows which instance rejects the question, and asks another one.
    if (!found || busy) confirmHook(callbacks, question, instance);
    const reply =
      found && !busy
        ? await answerHook(question, tenant, found.registration, instance, callbacks, (asked, signal) =>
            observedHook(options.observer, asked, message.headers?.get(HEADERS.traceparent), () =>
              found.handlers.answer(asked, signal),
            ),
          )
        : hookUnavailable(question, busy ?? `${service} does not serve ${question.hook} at ${question.point}`);
    if (reply === null) return;
    try {
      message.respond(reply);
    } catch (error) {
      // The connection is closed. The host asks again, or its time limit ends the question.
      log.warn({ hook: id, error }, 'an answer was not sent');
    }
  }

  function listen(handlers: HookHandlers): void {
    for (const id of idsOf(handlers)) {
      if (subscriptions.has(id)) continue;
      const callback = (error: Error | null, message: Msg) => {
        if (error) return log.error({ id, error }, 'a hook cannot be served');
        const one = answer(id, message).finally(() => running.delete(one));
        running.add(one);
      };
      // The instance's own subject is also subscribed in the group: permission to subscribe without it would expose all
      // questions.
      const own = [subjects.hook(tenant, id), subjects.hookTo(tenant, id, instance)];
      subscriptions.set(
        id,
        own.map((subject) => nc.subscribe(subject, { queue: HOOK_QUEUE_GROUP, callback })),
      );
    }
  }

  async function cease(ids: Iterable<string>): Promise<void> {
    await Promise.all(
      [...ids].flatMap((id) => {
        const own = subscriptions.get(id) ?? [];
        subscriptions.delete(id);
        return own.map((one) => one.drain());
      }),
    );
  }

  const forget = async () => {
    former = null;
    const ids = new Set(idsOf(current));
    await cease([...subscriptions.keys()].filter((id) => !ids.has(id)));
  };

  function beat(state: 'serving' | 'leaving'): void {
    try {
      nc.publish(subjects.hookInstance(tenant, service, instance), JSON.stringify({ v: 1, state }));
    } catch (error) {
      // The connection is closed. Hosts receive no heartbeats and declare this instance dead, as intended.
      log.debug({ error }, 'a beat was not sent');
    }
  }

  listen(current);
  try {
    await nc.flush();
    await announce(nc, log, tenant, service, current);
  } catch (error) {
    await cease([...subscriptions.keys()]);
    throw error;
  }
  const endKeeping = keepAnnounced(nc, log, tenant, service, () => current);
  beat('serving');
  const beats = setInterval(() => beat('serving'), HOOK_LIVENESS.beatMs);

  return {
    instance,
    async update(handlers) {
      await refuseTaken(nc, log, tenant, service, handlers);
      listen(handlers);
      await nc.flush();
      const before = current;
      current = handlers;
      try {
        await announce(nc, log, tenant, service, handlers);
      } catch (error) {
        current = before;
        throw error;
      }
      former = before;
      clearTimeout(forgetting);
      forgetting = setTimeout(() => void forget(), FORMER_SERVED_MS);
      forgetting.unref();
    },
    async stop() {
      endKeeping();
      clearInterval(beats);
      clearTimeout(forgetting);
      beat('leaving');
      await cease([...subscriptions.keys()]);
      await Promise.allSettled([...running]);
      if (!nc.isClosed()) await nc.flush();
    },
  };
}

/** The requests from handlers back to hosts, over a connection. */
function callbacksOver(nc: NatsConnection): HookCallbacks {
  return {
    async fetch(subject, wanted) {
      const { data, headers } = await wireOf(nc).request(subject, new TextEncoder().encode(wanted));
      return { part: data, total: Number(headers?.get(HEADERS.total)) };
    },
    tell: (subject, text) => nc.publish(subject, text),
  };
}

/** A registered hook service. */
export interface ListedHookService {
  readonly service: string;
  readonly since: string;
  /** Number of live instances. */
  readonly instances: number;
  readonly registrations: HookAnnouncement['registrations'];
}

/**
 * Lists the hook services of a tenant, oldest first.
 * @throws NoHostRespondsError, NatsUnavailableError, NatsRefusedError.
 */
export async function listHookServices(nc: NatsConnection, tenant: TenantId): Promise<ListedHookService[]> {
  // The bucket of heartbeats is in memory: a restarted server has lost it.
  await ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]);
  const [registered, beats] = await Promise.all([
    readHookServicesOf(nc, tenant),
    readTenantKeys(nc, tenant, STREAMS.hosts, 'hooks'),
  ]);
  return registered
    .filter((one) => one.announcement)
    .map(({ service, announcement }) => ({
      service,
      since: announcement?.since ?? '',
      instances: beats.filter(
        ({ subject, data }) => parseHookService(subject)?.service === service && beatOf(data) === 'serving',
      ).length,
      registrations: announcement?.registrations ?? [],
    }))
    .sort((a, b) => (a.since < b.since ? -1 : 1));
}

/**
 * Removes the registrations of a service.
 * @returns false if no service of this name is registered.
 * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError, StreamsMissingError.
 */
export async function removeHookService(nc: NatsConnection, tenant: string, service: string): Promise<boolean> {
  const subject = subjects.hookService(tenant, service);
  return replaceKey(nc, subject, `the registration of ${service}`, (stored) =>
    stored && registeredHooksOf(stored)?.announcement ? null : undefined,
  );
}
