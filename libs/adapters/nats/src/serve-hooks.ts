/**
 * Serves hook handlers on NATS, as served work: announces them, sends heartbeats, and answers in a queue group.
 *
 * HOOK-SERVICE-1  After a new announcement it keeps serving removed hooks for a while.
 * HOOK-SERVICE-2  An announcement replaces all registrations of the service, in one conditional write.
 */
import { type Announcement, type AnswerQuestion, announce, fetchWhole, RunningWork, serveWork } from '@coxswain/bus';
import { answerHook } from '@coxswain/handlers';
import type { HookHandlers, Log } from '@coxswain/ports';
import {
  BOUNDS,
  HookAnnouncement,
  type HookPoint,
  HookServiceName,
  readId,
  STREAMS,
  TenantId,
  type WorkObserver,
} from '@coxswain/protocol';
import { type NatsConnection, nuid } from '@nats-io/nats-core';
import { ensureBuckets } from './ensure-streams.ts';
import { readAnnouncements } from './served/list-served.ts';
import { NoHostRespondsError } from './tenant-keys.ts';

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
  /** The replaced handlers in the order of the updates, with the timers that forget them after their update. */
  const former = new Map<{ readonly handlers: HookHandlers }, NodeJS.Timeout | undefined>();
  let lastUpdate: Promise<unknown> = Promise.resolve();

  /** The current handlers, and the former ones, the last first. */
  const served = () => [current, ...[...former.keys()].map(({ handlers }) => handlers).reverse()];
  const servedAt = (hook: string, point: HookPoint) => {
    for (const handlers of served()) {
      const registration = handlers.table().find((one) => one.id === hook && one.point === point);
      if (registration) return { handlers, registration };
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
  const isServed = (hook: string) => served().some((handlers) => handlers.table().some(({ id }) => id === hook));
  const work = new RunningWork(({ hook }) => (hook !== undefined && isServed(hook) ? answerTo(hook) : null), {
    tenant,
  });
  const since = new Date().toISOString();
  const at = { kind: 'hooks', tenant, name: service } as const;
  const announceHooks = async (when: 'always' | 'where_missing') => {
    await refuseTaken(nc, log, tenant, service, current);
    const registrations = current.table();
    const announcement: Announcement<HookAnnouncement> = {
      at,
      schema: HookAnnouncement,
      // Hooks run in the order of their services, the oldest first: a change keeps the service's place.
      value: (first, before) => ({ v: 1, service, since: before?.since ?? first, registrations }),
    };
    await announce(nc, announcement, when);
  };
  const serving = await serveWork(nc, {
    at,
    instance,
    work,
    heartbeat: () => ({ since }),
    async announce(when) {
      // The server may have lost the buckets with its store.
      if (when === 'where_missing') await ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]);
      await announceHooks(when);
    },
    problem: (message) => log.error({ service }, message),
    drainMs: BOUNDS.hookTimeoutMaxMs,
  });

  async function replaceBy(handlers: HookHandlers): Promise<void> {
    const before = { handlers: current };
    current = handlers;
    // While the new ones are announced, sessions know the earlier ones.
    former.set(before, undefined);
    try {
      await announceHooks('always');
      former.set(before, setTimeout(() => former.delete(before), FORMER_SERVED_MS).unref());
    } catch (error) {
      current = before.handlers;
      former.delete(before);
      throw error;
    }
  }

  return {
    instance,
    update(handlers) {
      // One after another: a failed update returns to the handlers before it.
      const updated = lastUpdate.then(() => replaceBy(handlers));
      lastUpdate = updated.catch(() => undefined);
      return updated;
    },
    async stop() {
      for (const forgetting of former.values()) clearTimeout(forgetting);
      await serving.stop();
    },
  };
}

/** Another hook service has registered a hook of this id. */
export class HookIdTakenError extends Error {
  override readonly name = 'HookIdTakenError';
  readonly code = 'hook_id_taken';
}

/**
 * Rejects handlers whose ids belong to another hook service of the tenant. A tenant's key lists the services through a
 * session host. If no host responds, the ids are not compared and a warning is logged: hooks must be registered before
 * the first host serves a session.
 * @throws HookIdTakenError if another service has one of the ids; NatsUnavailableError, NatsRefusedError.
 */
async function refuseTaken(
  nc: NatsConnection,
  log: Log,
  tenant: TenantId,
  service: string,
  handlers: HookHandlers,
): Promise<void> {
  const own = new Set(handlers.table().map(({ id }) => id));
  const services = await readAnnouncements(nc, tenant, 'hooks').catch((error: Error) => {
    if (!(error instanceof NoHostRespondsError)) throw error;
    log.warn(
      { service },
      'no session host responds: the ids of these hooks are not compared with those of other services',
    );
    return new Map<string, HookAnnouncement>();
  });
  for (const [other, { registrations }] of services) {
    const taken = other === service ? undefined : registrations.find(({ id }) => own.has(id));
    if (taken) throw new HookIdTakenError(`the hook ${taken.id} is one of the service ${other}`);
  }
}
