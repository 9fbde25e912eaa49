/**
 * Serves hook handlers on NATS, as served work: announces them, sends heartbeats, and answers in a queue group.
 *
 * HOOK-SERVICE-1  After a new announcement it keeps serving removed hooks for a while.
 * HOOK-SERVICE-2  An announcement replaces all registrations of the service, in one conditional write.
 */
import { type AnswerQuestion, fetchWhole, RunningWork, serveWork } from '@coxswain/bus';
import { answerHook } from '@coxswain/handlers';
import type { HookHandlers, Log } from '@coxswain/ports';
import {
  BOUNDS,
  Heartbeat,
  type HookAnnouncement,
  type HookPoint,
  HookServiceName,
  parseServedKey,
  readId,
  STREAMS,
  subjects,
  TenantId,
  type WorkObserver,
} from '@coxswain/protocol';
import { type NatsConnection, nuid } from '@nats-io/nats-core';
import { announce, refuseTaken } from './announce-hooks.ts';
import { ensureBuckets } from './ensure-streams.ts';
import { readHookServicesOf, registeredHooksOf } from './hook-registry-key.ts';
import { valueIn } from './read-keys.ts';
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
  let current = options.handlers;
  let former: HookHandlers | null = null;
  let forgetting: NodeJS.Timeout | undefined;

  const servedAt = (hook: string, point: HookPoint) => {
    for (const handlers of [current, former]) {
      const registration = handlers?.table().find((one) => one.id === hook && one.point === point);
      if (handlers && registration) return { handlers, registration };
    }
    return null;
  };
  const answerTo =
    (hook: string): AnswerQuestion =>
    (received) =>
      answerHook(received, {
        registrationAt: (point) => servedAt(hook, point)?.registration,
        fetch: (subject, want) => fetchWhole(nc, subject, want, BOUNDS.transformedViewMaxBytes),
        async answer(question, signal) {
          const handlers = servedAt(hook, question.registration.point)?.handlers ?? current;
          return handlers.answer(question, signal);
        },
        observer: options.observer,
      });
  const isServed = (hook: string) =>
    [current, former].some((handlers) => handlers?.table().some(({ id }) => id === hook) ?? false);
  const work = new RunningWork(({ hook }) => (hook !== undefined && isServed(hook) ? answerTo(hook) : null), {
    tenant,
  });
  const since = new Date().toISOString();
  const serving = await serveWork(nc, {
    at: { kind: 'hooks', tenant, name: service },
    instance,
    work,
    heartbeat: () => ({ since }),
    async announce(when) {
      // The server may have lost the buckets with its store.
      if (when === 'where_missing') await ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]);
      await announce(nc, log, tenant, service, current, when === 'where_missing');
    },
    problem: (message) => log.error({ service }, message),
    drainMs: BOUNDS.hookTimeoutMaxMs,
  });

  return {
    instance,
    async update(handlers) {
      await refuseTaken(nc, log, tenant, service, handlers);
      const before = current;
      current = handlers;
      former = before;
      try {
        await announce(nc, log, tenant, service, handlers);
      } catch (error) {
        current = before;
        throw error;
      }
      clearTimeout(forgetting);
      forgetting = setTimeout(() => {
        former = null;
      }, FORMER_SERVED_MS);
      forgetting.unref();
    },
    async stop() {
      clearTimeout(forgetting);
      await serving.stop();
    },
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
        ({ subject, data }) =>
          parseServedKey(subject)?.name === service && valueIn(data, Heartbeat)?.state === 'serving',
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
  const subject = subjects.announcement('hooks', tenant, service);
  return replaceKey(nc, subject, `the registration of ${service}`, (stored) =>
    stored && registeredHooksOf(stored)?.announcement ? null : undefined,
  );
}
