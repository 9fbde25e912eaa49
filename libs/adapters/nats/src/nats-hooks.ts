/**
 * The hook port on NATS: asks hook services and tracks which of them are alive.
 *
 * B1: A point without a registration costs nothing: only registered hooks are asked, with one request per handler.
 * B2: The hooks of a dead service stay in the table, marked `unavailable`. They leave it only by a removal or a new
 *     announcement in the registry.
 */
import { onConnectionChange } from '@coxswain/bus';
import type { Hooks, Log } from '@coxswain/ports';
import {
  HOOK_LIVENESS,
  HookBeat,
  type HookTable,
  parseHookService,
  STREAMS,
  subjects,
  type TenantId,
} from '@coxswain/protocol';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { createHookQuestions } from './ask-hooks.ts';
import { ensureBuckets } from './ensure-streams.ts';
import { createHookFailover, EXPECTED_FOR_MS } from './hook-failover.ts';
import { type RegisteredHooks, readHookInstances, readHookServices, registeredHooksOf } from './hook-registry-key.ts';
import { valueIn } from './read-keys.ts';
import { watchRegistry } from './watch-registry.ts';

/** Hooks that services on NATS serve. */
export interface NatsHooks extends Hooks {
  /** Unsubscribes. Open questions fail with `hook_unavailable`. */
  stop(): Promise<void>;
}

interface Service {
  registered: RegisteredHooks;
  /** Time of the last heartbeat of each instance, on the monotonic clock, milliseconds. */
  readonly heardMs: Map<string, number>;
  alive: boolean;
}

const CHECKED_EVERY_MS = 250;
const INSTANCES_MAX = 256;
/** Pseudo-instance of a service that was just announced and has sent no heartbeat yet. No instance has this name. */
const ANNOUNCED = '';

/**
 * Creates the hook port on this connection. Resolves when every registration is known.
 * @throws NatsUnavailableError, NatsRefusedError, StreamConfigMismatchError.
 */
export async function createNatsHooks(nc: NatsConnection, log: Log): Promise<NatsHooks> {
  await ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]);
  const services = new Map<string, Service>();
  const questions = createHookQuestions(nc, log);
  const failover = createHookFailover(questions, {
    subject: ({ ref, registration: { id } }, instance) =>
      instance === undefined ? subjects.hook(ref.tenant, id) : subjects.hookTo(ref.tenant, id, instance),
    isExpected({ ref, registration }) {
      const oldest = performance.now() - EXPECTED_FOR_MS;
      return [...(serviceOf(ref.tenant, registration.id)?.heardMs.values() ?? [])].some((heardMs) => heardMs >= oldest);
    },
    silentMs: ({ ref, registration }, instance) => {
      const heardMs = serviceOf(ref.tenant, registration.id)?.heardMs.get(instance);
      return heardMs === undefined ? Number.POSITIVE_INFINITY : performance.now() - heardMs;
    },
    living: ({ ref, registration }) => {
      const oldest = performance.now() - HOOK_LIVENESS.ttlMs;
      return [...(serviceOf(ref.tenant, registration.id)?.heardMs ?? [])]
        .filter(([instance, heardMs]) => instance !== ANNOUNCED && heardMs >= oldest)
        .sort(([, one], [, other]) => other - one)
        .map(([instance]) => instance);
    },
  });
  const serviceOf = (tenant: string, hook: string): Service | undefined => {
    for (const service of services.values()) {
      const { registered } = service;
      if (registered.tenant === tenant && registered.announcement?.registrations.some(({ id }) => id === hook))
        return service;
    }
    return undefined;
  };
  const listeners = new Set<() => void>();
  const nameOf = ({ tenant, service }: { tenant: string; service: string }) => `${tenant}.${service}`;
  let checking = false;

  const changed = () => {
    for (const listener of [...listeners]) listener();
  };

  function take(registered: RegisteredHooks, justNow: boolean): void {
    const name = nameOf(registered);
    const known = services.get(name);
    if (known && known.registered.revision >= registered.revision) return;
    const isNew = justNow && !known?.registered.announcement;
    const service = known ?? { registered, heardMs: new Map(), alive: false };
    service.registered = registered;
    services.set(name, service);
    // A service that was just announced counts as alive: its heartbeats follow.
    if (isNew) service.heardMs.set(ANNOUNCED, performance.now());
    if (isNew) service.alive = true;
    const { tenant, service: of, announcement } = registered;
    if (announcement)
      log.info({ tenant, service: of, hooks: announcement.registrations.length }, 'hooks are registered');
    else if (known) log.info({ tenant, service: of }, 'hooks were removed');
    changed();
  }

  function hear(subject: string, data: Uint8Array): void {
    const key = parseHookService(subject);
    const service = key?.instance === undefined ? undefined : services.get(nameOf(key));
    if (!service || key?.instance === undefined) return;
    const state = beatOf(data);
    if (state === 'leaving') {
      service.heardMs.delete(key.instance);
      service.heardMs.delete(ANNOUNCED);
      if (service.heardMs.size === 0) setAlive(service, false);
    }
    if (state !== 'serving') return;
    if (service.heardMs.size >= INSTANCES_MAX && !service.heardMs.has(key.instance)) return;
    service.heardMs.set(key.instance, performance.now());
    setAlive(service, true);
  }

  function setAlive(service: Service, alive: boolean): void {
    if (service.alive === alive) return;
    service.alive = alive;
    const { tenant, service: name, announcement } = service.registered;
    if (!announcement) return;
    log[alive ? 'info' : 'warn'](
      { tenant, service: name },
      alive ? 'a hook service is available' : 'a hook service is gone',
    );
    changed();
  }

  const silent = () => {
    const oldest = performance.now() - HOOK_LIVENESS.ttlMs;
    return [...services.values()].filter(
      ({ alive, heardMs }) => alive && [...heardMs.values()].every((heard) => heard < oldest),
    );
  };
  const timer = setInterval(() => void check(), CHECKED_EVERY_MS);
  timer.unref();
  // Heartbeats may be queued for a host that was suspended. After a flush they have been received.
  async function check(): Promise<void> {
    if (checking || !questions.isConnected() || silent().length === 0) return;
    checking = true;
    try {
      await nc.flush();
      if (questions.isConnected()) for (const service of silent()) setAlive(service, false);
    } catch {
      // The connection was lost: then silence proves nothing about services.
    } finally {
      checking = false;
    }
  }

  const endListening = onConnectionChange(nc, {
    restored() {
      const nowMs = performance.now();
      for (const { heardMs } of services.values()) for (const id of heardMs.keys()) heardMs.set(id, nowMs);
    },
  });

  const subscriptions = [
    nc.subscribe(subjects.hookInstances, {
      callback: (error, message) => {
        if (!error) hear(message.subject, message.data);
      },
    }),
  ];

  for (const registered of await readHookServices(nc)) take(registered, false);
  const watch = await watchRegistry(nc, 'hooks.>', log);
  void (async () => {
    for await (const entry of watch) {
      const head = headers();
      if (entry.operation !== 'PUT') head.set('KV-Operation', entry.operation);
      const subject = `$KV.${STREAMS.registry}.${entry.key}`;
      const registered = registeredHooksOf({ subject, seq: entry.revision, data: entry.value, headers: head });
      if (registered) take(registered, true);
      else log.warn({ key: entry.key }, 'the registry contains an invalid hook service');
    }
  })().catch((error: unknown) => log.error({ error }, 'the registry of hooks is no longer watched'));
  for (const [subject, data] of await readHookInstances(nc)) hear(subject, data);

  return {
    table: (tenant) => tableOf([...services.values()], tenant),
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    ask: (request, signal) => failover.ask(request, signal),
    async stop() {
      clearInterval(timer);
      endListening();
      watch.stop();
      for (const subscription of subscriptions) subscription.unsubscribe();
      questions.stop();
    },
  };
}

/** The state in a heartbeat; null if the bytes are not a heartbeat. */
export function beatOf(data: Uint8Array): HookBeat['state'] | null {
  return valueIn(data, HookBeat)?.state ?? null;
}

function tableOf(services: readonly Service[], tenant: TenantId): HookTable {
  return services
    .filter(({ registered }) => registered.announcement && registered.tenant === tenant)
    .sort(({ registered: a }, { registered: b }) => {
      const [first, second] = [a.announcement?.since ?? '', b.announcement?.since ?? ''];
      return first < second ? -1 : first > second ? 1 : a.service < b.service ? -1 : 1;
    })
    .flatMap(({ registered, alive }) =>
      (registered.announcement?.registrations ?? []).map((registration) =>
        alive ? registration : { ...registration, unavailable: true as const },
      ),
    );
}
