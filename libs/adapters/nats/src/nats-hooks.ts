/**
 * The hook port on the bus: asks hook services, and knows which of them live.
 *
 * B1: A point without a registration costs nothing: only what the table names is asked, one request for each handler.
 * B2: What has ceased to live stays in the table, marked unavailable; only a removal in the registry takes it out.
 * B3: An answer is a stranger's: it is read once, within a bound, and counts only if it names what was asked. Its
 *     subject cannot be guessed from another question's.
 */
import { randomUUID } from 'node:crypto';
import type { HookReply, HookRequest, Hooks, Log } from '@coxswain/ports';
import {
  BOUNDS,
  HEADERS,
  HOOK_ENVELOPE_MAX_BYTES,
  HOOK_LIVENESS,
  HOOK_PART_BYTES,
  HookAnswered,
  type HookAsked,
  HookBeat,
  HookCallback,
  type HookTable,
  type Message,
  parseHookService,
  STREAMS,
  subjects,
  type TenantId,
} from '@coxswain/protocol';
import { Kvm } from '@nats-io/kv';
import { createInbox, headers, type Msg, type NatsConnection } from '@nats-io/nats-core';
import { onConnectionChange } from './connection-changes.ts';
import { ensureBuckets } from './ensure-streams.ts';
import { type RegisteredHooks, readHookInstances, readHookServices, registeredHooksOf } from './hook-registry-key.ts';
import { STATUS, statusOf } from './nats-status.ts';
import { valueIn } from './read-keys.ts';
import { inboxPrefixOf } from './wire.ts';

/** Hooks that are served on the bus. */
export interface NatsHooks extends Hooks {
  /** Ends it; what is being asked fails. */
  stop(): Promise<void>;
}

interface Service {
  registered: RegisteredHooks;
  /** When each instance was last heard of, on the monotonic clock. */
  readonly heardMs: Map<string, number>;
  alive: boolean;
}

interface Pending {
  readonly request: HookRequest;
  settle(reply: HookReply): void;
  /** What is fetched in parts, made once. */
  readonly lists: Map<'transcript' | 'messages', Buffer>;
}

const CHECKED_EVERY_MS = 250;
const INSTANCES_MAX = 256;
/** Stands for whoever has announced a service. No instance is named so. */
const ANNOUNCED = '';

/**
 * Hooks on this connection. Resolves when every registration is known.
 * @throws NatsUnavailableError, NatsRefusedError, StreamConfigMismatchError.
 */
export async function createNatsHooks(nc: NatsConnection, log: Log): Promise<NatsHooks> {
  await ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]);
  const services = new Map<string, Service>();
  const pending = new Map<string, Pending>();
  const listeners = new Set<() => void>();
  const inbox = createInbox(inboxPrefixOf(nc));
  const nameOf = ({ tenant, service }: { tenant: string; service: string }) => `${tenant}.${service}`;
  let connected = true;
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
    // Somebody has announced it this moment, and will be heard of soon.
    if (isNew) service.heardMs.set(ANNOUNCED, performance.now());
    if (isNew) service.alive = true;
    const { tenant, service: of, announcement } = registered;
    if (announcement)
      log.info({ tenant, service: of, hooks: announcement.registrations.length }, 'hooks are registered');
    else if (known) log.info({ tenant, service: of }, 'hooks were taken back');
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
    log[alive ? 'info' : 'warn']({ tenant, service: name }, alive ? 'a hook service serves' : 'a hook service is gone');
    changed();
    if (alive) return;
    const ids = new Set(announcement.registrations.map(({ id }) => id));
    for (const { request, settle } of [...pending.values()]) {
      if (request.ref.tenant === tenant && ids.has(request.registration.id))
        settle(unavailable(`the service ${name} ended while it was asked`));
    }
  }

  const silent = () => {
    const oldest = performance.now() - HOOK_LIVENESS.ttlMs;
    return [...services.values()].filter(
      ({ alive, heardMs }) => alive && [...heardMs.values()].every((heard) => heard < oldest),
    );
  };
  const timer = setInterval(() => void check(), CHECKED_EVERY_MS);
  timer.unref();
  // A host that was itself held up has beats waiting for it: they are in by the time that the server answers.
  async function check(): Promise<void> {
    if (checking || !connected || silent().length === 0) return;
    checking = true;
    try {
      await nc.flush();
      if (connected) for (const service of silent()) setAlive(service, false);
    } catch {
      // The connection went; what is silent then says nothing of services.
    } finally {
      checking = false;
    }
  }

  const endListening = onConnectionChange(nc, {
    lost() {
      connected = false;
      for (const { settle } of [...pending.values()]) settle(unavailable('the connection was lost'));
    },
    restored() {
      connected = true;
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
    nc.subscribe(`${inbox}.r.*`, {
      callback: (error, message) => {
        const token = message?.subject.slice(inbox.length + 3);
        const one = error ? undefined : pending.get(token);
        if (one) one.settle(replyOf(message, one.request));
      },
    }),
    nc.subscribe(`${inbox}.c.*`, {
      callback: (error, message) => {
        const one = error ? undefined : pending.get(message.subject.slice(inbox.length + 3));
        if (one) serveCallback(message, one, log);
      },
    }),
  ];

  for (const registered of await readHookServices(nc)) take(registered, false);
  const watch = await (await new Kvm(nc).open(STREAMS.registry)).watch({ key: 'hooks.>' });
  void (async () => {
    for await (const entry of watch) {
      const head = headers();
      if (entry.operation !== 'PUT') head.set('KV-Operation', entry.operation);
      const subject = `$KV.${STREAMS.registry}.${entry.key}`;
      const registered = registeredHooksOf({ subject, seq: entry.revision, data: entry.value, headers: head });
      if (registered) take(registered, true);
      else log.warn({ key: entry.key }, 'what stands in the registry is no hook service');
    }
  })().catch((error: unknown) => log.error({ error }, 'the registry of hooks is not watched any more'));
  for (const [subject, data] of await readHookInstances(nc)) hear(subject, data);

  return {
    table: (tenant) => tableOf([...services.values()], tenant),
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    ask(request, signal) {
      const token = randomUUID();
      return new Promise((resolve) => {
        const settle = (reply: HookReply) => {
          pending.delete(token);
          signal.removeEventListener('abort', aborted);
          resolve(reply);
        };
        const aborted = () => settle(unavailable('nobody waits for it any more'));
        pending.set(token, { request, settle, lists: new Map() });
        try {
          const body = JSON.stringify(asked(request, `${inbox}.c.${token}`));
          nc.publish(subjects.hook(request.ref.tenant, request.registration.id), body, {
            reply: `${inbox}.r.${token}`,
          });
        } catch (error) {
          settle(unavailable(`it could not be asked: ${(error as Error).message}`));
          return;
        }
        // What was published leaves in the first microtask from here, and need not wait for this.
        queueMicrotask(() => {
          if (!pending.has(token)) return;
          if (signal.aborted) aborted();
          else signal.addEventListener('abort', aborted, { once: true });
        });
      });
    },
    async stop() {
      clearInterval(timer);
      endListening();
      watch.stop();
      for (const subscription of subscriptions) subscription.unsubscribe();
      for (const { settle } of [...pending.values()]) settle(unavailable('the host stops'));
    },
  };
}

/** What a beat says; null where it is none. */
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

function asked(request: HookRequest, callback: string): HookAsked {
  const { ref, effectId, registration, payload, messages } = request;
  return {
    v: 1,
    hook: registration.id,
    session_id: ref.sessionId,
    effect_id: effectId,
    point: registration.point,
    payload,
    timeout_ms: registration.timeout_ms,
    callback,
    ...(messages ? { shows_messages: true as const } : {}),
  };
}

function replyOf(message: Msg, { ref, effectId, registration, messages }: HookRequest): HookReply {
  if (statusOf(message) === STATUS.noResponders) return unavailable('nobody serves it');
  const bytes = message.data.length;
  if (bytes > BOUNDS.hookPayloadMaxBytes + HOOK_ENVELOPE_MAX_BYTES) {
    const told = `the answer has ${bytes} bytes, at most ${BOUNDS.hookPayloadMaxBytes} are taken`;
    return { status: 'failed', code: 'return_unreadable', message: told };
  }
  let value: unknown;
  try {
    value = message.json();
  } catch {
    return unavailable('what came back is not JSON');
  }
  const parsed = HookAnswered.safeParse(value);
  if (!parsed.success) return unavailable('what came back is no answer of a hook service');
  const answer = parsed.data;
  if (answer.hook !== registration.id || answer.session_id !== ref.sessionId || answer.effect_id !== effectId)
    return unavailable('what came back answers another question');
  if (answer.status === 'failed') return { status: 'failed', code: answer.code, message: answer.message };
  if (answer.status === 'returned') return { status: 'returned', raw: answer.raw };
  const shown = answer.messages.map((one) => (typeof one === 'number' ? messages?.[one] : one));
  if (shown.includes(undefined)) return unavailable('what came back names messages that were not shown');
  return { status: 'returned', raw: { messages: shown } };
}

function serveCallback(message: Msg, { request, lists }: Pending, log: Log): void {
  try {
    const wanted = HookCallback.safeParse(message.json());
    if (!wanted.success) return;
    const { data } = wanted;
    if (data.want === 'feedback') {
      request.onFeedback(data.text);
      return;
    }
    const list =
      lists.get(data.want) ?? bytesOf(data.want === 'messages' ? (request.messages ?? []) : request.transcript());
    lists.set(data.want, list);
    const head = headers();
    head.set(HEADERS.total, String(list.length));
    message.respond(list.subarray(data.offset, data.offset + HOOK_PART_BYTES), { headers: head });
  } catch (error) {
    log.warn({ hook: request.registration.id, error }, 'what a handler wanted could not be given');
  }
}

function bytesOf(messages: readonly Message[]): Buffer {
  const bytes = Buffer.from(JSON.stringify(messages));
  if (bytes.length <= BOUNDS.transformedViewMaxBytes) return bytes;
  throw new Error(`the messages have ${bytes.length} bytes, at most ${BOUNDS.transformedViewMaxBytes} are sent`);
}

function unavailable(message: string): HookReply {
  return { status: 'failed', code: 'hook_unavailable', message };
}
