/**
 * Serves handlers on the bus: announces them, says that it lives, and answers in a queue group.
 *
 * V1: It listens before it announces, and goes on serving what a new announcement no longer names for a while.
 * V2: Announcing replaces the whole set of the service, in one write under a fence.
 * V3: Leaving is no deregistration: what was asked is answered, and the registrations stay.
 */
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
import { wireOf } from './wire.ts';

/** What is served, and as what. */
export interface ServeHooksOptions {
  readonly tenant: string;
  readonly service: string;
  readonly handlers: HookHandlers;
  /** Told of each question that is answered. */
  readonly observer?: WorkObserver | undefined;
}

/** Handlers that are served. */
export interface ServedHooks {
  /** This instance. */
  readonly instance: string;
  /** Serves other handlers from now on. @throws as {@link serveHooks}; then the ones before are served. */
  update(handlers: HookHandlers): Promise<void>;
  /** Takes no more questions, and resolves when those that it has are answered. */
  stop(): Promise<void>;
}

/** So long hosts may still ask for what was just taken back: their sessions have to hear of it first. */
const FORMER_SERVED_MS = 10_000;

/**
 * Announces handlers and serves them.
 * @throws HookIdTakenError, InvalidIdError for a name, NatsUnavailableError, NatsRefusedError, StreamConfigMismatchError.
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
    // So the question goes to another instance.
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
      // The connection has gone: whoever asked sees that for itself.
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
      // Also its own subject: who may listen without the group could read every question.
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
      // The connection is gone: hosts hear nothing, which is what it means.
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

/** What answering asks of hosts over a connection. */
function callbacksOver(nc: NatsConnection): HookCallbacks {
  return {
    async fetch(subject, wanted) {
      const { data, headers } = await wireOf(nc).request(subject, new TextEncoder().encode(wanted));
      return { part: data, total: Number(headers?.get(HEADERS.total)) };
    },
    tell: (subject, text) => nc.publish(subject, text),
  };
}

/** A hook service as it is registered. */
export interface ListedHookService {
  readonly service: string;
  readonly since: string;
  /** Instances that serve at the moment. */
  readonly instances: number;
  readonly registrations: HookAnnouncement['registrations'];
}

/** The hook services of a tenant, the oldest first. @throws NoHostAnswersError, NatsUnavailableError, NatsRefusedError. */
export async function listHookServices(nc: NatsConnection, tenant: TenantId): Promise<ListedHookService[]> {
  // Beats are kept in memory: a server that was started again has lost their bucket.
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
 * Takes the registrations of a service back.
 * @returns false where there is none of the name.
 */
export async function removeHookService(nc: NatsConnection, tenant: string, service: string): Promise<boolean> {
  const subject = subjects.hookService(tenant, service);
  return replaceKey(nc, subject, `the registration of ${service}`, (stored) =>
    stored && registeredHooksOf(stored)?.announcement ? null : undefined,
  );
}
