/**
 * Serves handlers on the bus: announces them, says that it lives, and answers in a queue group.
 *
 * V1: It listens before it announces, and goes on serving what a new announcement no longer names for a while.
 * V2: Announcing replaces the whole set of the service, in one write under a fence.
 * V3: Leaving is no deregistration: what was asked is answered, and the registrations stay.
 */
import type { HookHandlers, HookQuestion, HookReply, Log } from '@coxswain/ports';
import {
  BOUNDS,
  canonicalJson,
  HEADERS,
  HOOK_LIVENESS,
  HOOK_QUEUE_GROUP,
  type HookAnnouncement,
  HookAsked,
  type HookCallback,
  HookServiceName,
  isInboxSubject,
  Message,
  parseHookService,
  readId,
  returnProblem,
  STREAMS,
  subjects,
  TenantId,
} from '@coxswain/protocol';
import { type Msg, type NatsConnection, nuid, type Subscription } from '@nats-io/nats-core';
import { announce, idsOf, keepAnnounced, refuseTaken } from './announce-hooks.ts';
import { ensureBuckets } from './ensure-streams.ts';
import { readHookInstances, readHookServices, registeredHooksOf } from './hook-registry-key.ts';
import { beatOf } from './nats-hooks.ts';
import { replaceKey } from './registry-keys.ts';
import { wireOf } from './wire.ts';

/** What is served, and as what. */
export interface ServeHooksOptions {
  readonly tenant: string;
  readonly service: string;
  readonly handlers: HookHandlers;
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

/** Questions that are being answered at once; whoever asks beyond it is told so. */
const ANSWERING_MAX = 256;
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
  const subscriptions = new Map<string, Subscription>();
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
    const question = questionIn(message, id);
    if (!question) return log.warn({ subject: message.subject }, 'what came is no question');
    const found = served(question);
    const busy = running.size >= ANSWERING_MAX ? 'it answers as many questions as it can' : null;
    const reply =
      found && !busy
        ? await answered(nc, found.handlers, { ...question, registration: found.registration, tenant })
        : failed('hook_unavailable', busy ?? `${service} does not serve ${question.hook} at ${question.point}`);
    if (reply) respond(message, question, reply, log);
  }

  function listen(handlers: HookHandlers): void {
    for (const id of idsOf(handlers)) {
      if (subscriptions.has(id)) continue;
      const subscription = nc.subscribe(subjects.hook(tenant, id), {
        queue: HOOK_QUEUE_GROUP,
        callback: (error, message) => {
          if (error) return log.error({ id, error }, 'a hook cannot be served');
          const one = answer(id, message).finally(() => running.delete(one));
          running.add(one);
        },
      });
      subscriptions.set(id, subscription);
    }
  }

  async function cease(ids: Iterable<string>): Promise<void> {
    await Promise.all(
      [...ids].map((id) => {
        const subscription = subscriptions.get(id);
        subscriptions.delete(id);
        return subscription?.drain();
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
    await announce(nc, tenant, service, current);
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
      await refuseTaken(nc, tenant, service, handlers);
      listen(handlers);
      await nc.flush();
      const before = current;
      current = handlers;
      try {
        await announce(nc, tenant, service, handlers);
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

function questionIn(message: Msg, id: string): HookAsked | null {
  try {
    const parsed = HookAsked.safeParse(message.json());
    if (!parsed.success) return null;
    const { data } = parsed;
    return data.hook === id && isInboxSubject(data.callback) ? data : null;
  } catch {
    // No JSON.
    return null;
  }
}

type Asked = HookAsked & { readonly registration: HookQuestion['registration']; readonly tenant: TenantId };

async function answered(nc: NatsConnection, handlers: HookHandlers, asked: Asked): Promise<Answer | null> {
  const { registration, payload, callback, timeout_ms } = asked;
  const fetched = new Map<string, Promise<readonly Message[]>>();
  const list = (want: 'transcript' | 'messages') => async () => {
    const known = fetched.get(want) ?? fetchList(nc, callback, want);
    fetched.set(want, known);
    return known;
  };
  const question: HookQuestion = {
    ref: { tenant: asked.tenant, sessionId: asked.session_id },
    effectId: asked.effect_id,
    registration,
    payload,
    transcript: list('transcript'),
    ...(asked.shows_messages ? { messages: list('messages') } : {}),
    onFeedback: (text) => tell(nc, callback, text),
  };
  const reply = await answeredWithin(timeout_ms, (signal) => handlers.answer(question, signal));
  if (reply === null || reply.status === 'failed') return reply;
  const problem = problemOf(reply.raw);
  if (problem !== null) return failed('return_unreadable', `the return is not JSON: ${problem}`);
  return shapedBy(reply.raw, await fetched.get('messages'));
}

// A return may be an object that throws when it is looked at.
function problemOf(raw: unknown): string | null {
  try {
    return returnProblem(raw);
  } catch (error) {
    return String((error as Error)?.message ?? error).slice(0, 500);
  }
}

/**
 * Gives a handler up with null, and tells it so, when nobody waits any more: whoever asked began to count before, and
 * says itself that it was too late. Most handlers answer at once, and need no timer.
 */
function answeredWithin(
  timeoutMs: number,
  ask: (signal: AbortSignal) => Promise<HookReply>,
): Promise<HookReply | null> {
  const waiting = new AbortController();
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const late = () => {
      resolve(null);
      waiting.abort();
    };
    const starting = setImmediate(() => {
      timer = setTimeout(late, timeoutMs);
    });
    const settled = () => {
      clearImmediate(starting);
      clearTimeout(timer);
    };
    void ask(waiting.signal).then(resolve, reject).then(settled);
  });
}

type Answer =
  | Extract<HookReply, { status: 'failed' }>
  | { readonly status: 'returned'; readonly raw: unknown }
  | { readonly status: 'shaped'; readonly messages: readonly (number | Message)[] };

// A whole view may be larger than a message may be: what was shown is told by its places.
function shapedBy(raw: unknown, shown: readonly Message[] | undefined): Answer {
  if (!shown) return { status: 'returned', raw };
  try {
    const { messages, ...rest } = raw as { messages?: unknown };
    const isView = Array.isArray(messages) && Object.keys(rest).length === 0;
    if (!isView || !messages.every((one) => Message.safeParse(one).success)) return { status: 'returned', raw };
    return { status: 'shaped', messages: byPlaces(messages as Message[], shown) };
  } catch {
    // Nothing that has messages: it is told as it is.
    return { status: 'returned', raw };
  }
}

function byPlaces(returned: readonly Message[], shown: readonly Message[]): (number | Message)[] {
  const places = new Map(shown.map((message, place) => [canonicalJson(message), place]));
  return returned.map((message) => places.get(canonicalJson(message)) ?? message);
}

function failed(
  code: 'hook_unavailable' | 'return_unreadable',
  message: string,
): Extract<Answer, { status: 'failed' }> {
  return { status: 'failed', code, message };
}

function respond(message: Msg, asked: HookAsked, answer: Answer, log: Log): void {
  try {
    message.respond(replyOf(asked, answer));
  } catch (error) {
    // The connection has gone: whoever asked sees that for itself.
    log.warn({ hook: asked.hook, error }, 'an answer was not sent');
  }
}

function replyOf({ hook, session_id, effect_id }: HookAsked, answer: Answer): string {
  const reply = (what: Answer) => JSON.stringify({ v: 1, hook, session_id, effect_id, ...what });
  try {
    const text = reply(answer);
    const bytes = Buffer.byteLength(text);
    if (bytes <= BOUNDS.hookPayloadMaxBytes) return text;
    return reply(
      failed('return_unreadable', `the return has ${bytes} bytes, at most ${BOUNDS.hookPayloadMaxBytes} are taken`),
    );
  } catch (error) {
    return reply(failed('return_unreadable', `the return is not JSON: ${(error as Error).message.slice(0, 500)}`));
  }
}

function tell(nc: NatsConnection, callback: string, text: string): void {
  const said: HookCallback = { want: 'feedback', text: text.slice(0, 8_192) };
  nc.publish(callback, JSON.stringify(said));
}

async function fetchList(nc: NatsConnection, callback: string, want: 'transcript' | 'messages'): Promise<Message[]> {
  const parts: Uint8Array[] = [];
  let offset = 0;
  let total = Number.POSITIVE_INFINITY;
  while (offset < total) {
    const wanted: HookCallback = { want, offset };
    const part = await wireOf(nc).request(callback, new TextEncoder().encode(JSON.stringify(wanted)));
    total = Number(part.headers?.get(HEADERS.total));
    if (!(total <= BOUNDS.transformedViewMaxBytes) || part.data.length === 0)
      throw new Error('the host does not give it');
    parts.push(part.data);
    offset += part.data.length;
  }
  return Message.array().parse(JSON.parse(Buffer.concat(parts).toString('utf8')));
}

/** A hook service as it is registered. */
export interface ListedHookService {
  readonly service: string;
  readonly since: string;
  /** Instances that serve at the moment. */
  readonly instances: number;
  readonly registrations: HookAnnouncement['registrations'];
}

/** The hook services of a tenant, the oldest first. @throws NatsUnavailableError, NatsRefusedError. */
export async function listHookServices(nc: NatsConnection, tenant: string): Promise<ListedHookService[]> {
  // Beats are kept in memory: a server that was started again has lost their bucket.
  await ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]);
  const [registered, beats] = await Promise.all([readHookServices(nc), readHookInstances(nc)]);
  return registered
    .filter((one) => one.tenant === tenant && one.announcement)
    .map(({ service, announcement }) => ({
      service,
      since: announcement?.since ?? '',
      instances: [...beats].filter(([subject, data]) => {
        const key = parseHookService(subject);
        return key?.tenant === tenant && key.service === service && beatOf(data) === 'serving';
      }).length,
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
