import {
  type Instances,
  isRemovedKey,
  onConnectionChange,
  type ServedAddress,
  type StoredMessage,
  valueIn,
} from '@coxswain/bus';
import type { Log } from '@coxswain/ports';
import {
  cutText,
  Heartbeat,
  parseServedKey,
  SERVED_LIVENESS,
  type ServedKind,
  STREAMS,
  subjects,
  type TenantId,
} from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { ensureBuckets } from '../ensure-streams.ts';
import { readKeys, readRegistry } from '../read-keys.ts';
import { watchRegistry } from '../watch-registry.ts';
import { type AnnouncementOf, KINDS } from './kinds.ts';

/** An announced tool, persona or hook service. */
export interface Announced<A> {
  readonly tenant: TenantId;
  readonly name: string;
  readonly announcement: A;
  /** Whether a live instance takes requests, or it was just announced. */
  readonly isServed: boolean;
}

/** The announcements of one kind, and the live instances of each. */
export interface ServedPresence<A> extends Instances {
  /** The announcement; null for an unknown or removed name. */
  find(tenant: TenantId, name: string): A | null;
  /** The announcements of a tenant, or of all tenants, sorted by name. */
  list(tenant?: TenantId): readonly Announced<A>[];
  /**
   * Reads one announcement now, so that a session that starts sees the newest one.
   * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError.
   */
  read(tenant: TenantId, name: string): Promise<void>;
  /** Calls back when an announcement changes, and when a service becomes available or unavailable. */
  onChange(changed: () => void): () => void;
  stop(): void;
}

interface Instance {
  heardMs: number;
  state: Heartbeat['state'];
  version: string | undefined;
}

interface Entry<A> {
  readonly tenant: TenantId;
  readonly name: string;
  announcement: A | null;
  revision: number;
  /**
   * When it was announced while this host listened, on the monotonic clock, milliseconds. An instance serves it then,
   * and its heartbeats follow.
   */
  announcedMs: number;
  readonly instances: Map<string, Instance>;
  isServed: boolean;
}

const INSTANCES_MAX = 1_024;
const CHECKED_EVERY_MS = 250;
/**
 * After this silence an instance may be forgotten, milliseconds. The server detects a dead connection within minutes.
 */
const REMEMBERED_MS = 600_000;

/**
 * Watches what is announced and served on NATS. Resolves when every announcement is known.
 * @throws NatsUnavailableError, NatsRefusedError, StreamConfigMismatchError.
 */
export async function watchPresence<K extends ServedKind>(
  nc: NatsConnection,
  kind: K,
  log: Log,
): Promise<ServedPresence<AnnouncementOf[K]>> {
  type A = AnnouncementOf[K];
  const { schema, identityOf, log: texts } = KINDS[kind];
  await ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]);
  const entries = new Map<string, Entry<A>>();
  const listeners = new Set<() => void>();
  let listeningSinceMs = performance.now();
  let isConnected = true;
  let isChecking = false;
  const find = (tenant: string, name: string) => entries.get(`${tenant}.${name}`);
  const changed = () => {
    for (const listener of [...listeners]) listener();
  };

  function take(
    { subject, seq, data }: Pick<StoredMessage, 'subject' | 'seq' | 'data'>,
    removed: boolean,
    isNew: boolean,
  ) {
    const key = parseServedKey(subject);
    const announcement = removed ? null : valueIn(data, schema);
    const isValid = removed || (announcement !== null && identityOf(announcement).name === key?.name);
    if (key?.kind !== kind || key.instance !== undefined || !isValid) {
      log.warn({ key: cutText(subject, 256) }, `the registry contains an invalid key of ${kind}`);
      return;
    }
    const { tenant, name } = key;
    const entry = find(tenant, name) ?? {
      tenant,
      name,
      announcement: null,
      revision: 0,
      announcedMs: Number.NEGATIVE_INFINITY,
      instances: new Map(),
      isServed: false,
    };
    if (entry.revision >= seq) return;
    entries.set(`${tenant}.${name}`, entry);
    const isKnown = entry.announcement !== null;
    entry.announcement = announcement;
    entry.revision = seq;
    if (isNew && announcement) {
      entry.announcedMs = performance.now();
      entry.isServed = true;
    }
    const { member, announced, removed: removedText } = texts;
    const version = announcement ? identityOf(announcement).version : undefined;
    const about = { tenant, [member]: name, ...(version === undefined ? {} : { version }) };
    if (announcement || isKnown) log.info(about, announcement ? announced : removedText);
    changed();
  }

  function hear(subject: string, data: Uint8Array): void {
    const key = parseServedKey(subject);
    const heartbeat = valueIn(data, Heartbeat);
    // Heartbeats for a service that was never announced are ignored, so that they use no memory.
    const entry = key && find(key.tenant, key.name);
    if (key?.kind !== kind || key.instance === undefined || !entry || !heartbeat) return;
    const { instances } = entry;
    if (heartbeat.state === 'gone') {
      instances.delete(key.instance);
      entry.announcedMs = Number.NEGATIVE_INFINITY;
      setServed(entry, isServed(entry));
      return;
    }
    if (!instances.has(key.instance)) forgetSilent(instances, REMEMBERED_MS);
    if (!instances.has(key.instance) && instances.size >= INSTANCES_MAX) forgetSilent(instances, SERVED_LIVENESS.ttlMs);
    if (!instances.has(key.instance) && instances.size >= INSTANCES_MAX) return;
    const { state, version } = heartbeat;
    instances.set(key.instance, { heardMs: performance.now(), state, version });
    if (state === 'serving') setServed(entry, true);
  }

  function setServed(entry: Entry<A>, served: boolean): void {
    if (entry.isServed === served) return;
    entry.isServed = served;
    const { tenant, name } = entry;
    if (!entry.announcement) return;
    const { member, available, unavailable } = texts;
    log[served ? 'info' : 'warn']({ tenant, [member]: name }, served ? available : unavailable);
    changed();
  }

  const timer = setInterval(() => void check(), CHECKED_EVERY_MS);
  timer.unref();
  // Heartbeats may be queued for a host that was suspended. After a flush they have been received.
  async function check(): Promise<void> {
    const isUnserved = (entry: Entry<A>) => entry.isServed && !isServed(entry);
    if (isChecking || !isConnected || ![...entries.values()].some(isUnserved)) return;
    isChecking = true;
    try {
      await nc.flush();
      if (isConnected) for (const entry of [...entries.values()].filter(isUnserved)) setServed(entry, false);
    } catch {
      // The connection was lost: then silence proves nothing about services.
    } finally {
      isChecking = false;
    }
  }

  /** Whether a service was just announced or has a live instance that takes requests, of one version if it is given. */
  function isServed({ announcement, announcedMs, instances }: Entry<A>, version?: string): boolean {
    const isOf = (other: string | undefined) => version === undefined || other === version;
    if (
      announcement &&
      isOf(identityOf(announcement).version) &&
      performance.now() - announcedMs < SERVED_LIVENESS.ttlMs
    )
      return true;
    return [...instances.values()].some((one) => one.state === 'serving' && !isSilent(one) && isOf(one.version));
  }

  /** The instances of a service, of one version if the address has one. */
  function instancesOf({ tenant, name, version }: ServedAddress): [string, Instance][] {
    const all = [...(find(tenant, name)?.instances ?? [])];
    return version === undefined ? all : all.filter(([, one]) => one.version === version);
  }
  const living = (of: ServedAddress) => instancesOf(of).filter(([, one]) => !isSilent(one));

  const subscription = nc.subscribe(subjects.heartbeats(kind), {
    callback: (error, message) => {
      if (!error) hear(message.subject, message.data);
    },
  });
  const endListening = onConnectionChange(nc, {
    lost() {
      isConnected = false;
    },
    restored() {
      isConnected = true;
      listeningSinceMs = performance.now();
      for (const { instances } of entries.values())
        for (const instance of instances.values()) instance.heardMs = listeningSinceMs;
    },
  });
  for (const stored of await readRegistry(nc, subjects.announcements(kind))) take(stored, isRemovedKey(stored), false);
  const watch = await watchRegistry(nc, `${kind}.>`, log);
  void (async () => {
    for await (const { key, revision, value, operation } of watch)
      take({ subject: `$KV.${STREAMS.registry}.${key}`, seq: revision, data: value }, operation !== 'PUT', true);
  })().catch((error: unknown) => log.error({ kind, error }, 'the registry is no longer watched'));
  for (const { subject, data } of (await readKeys(nc, STREAMS.hosts, subjects.heartbeats(kind))).values())
    hear(subject, data);

  return {
    find: (tenant, name) => find(tenant, name)?.announcement ?? null,
    list: (tenant) =>
      [...entries.values()]
        .flatMap(({ tenant: of, name, announcement, isServed }) =>
          announcement && (tenant === undefined || of === tenant) ? [{ tenant: of, name, announcement, isServed }] : [],
        )
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    async read(tenant, name) {
      for (const stored of await readRegistry(nc, subjects.announcement(kind, tenant, name)))
        take(stored, isRemovedKey(stored), true);
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    isServed(of) {
      const entry = find(of.tenant, of.name);
      return entry !== undefined && isServed(entry, of.version);
    },
    serving: (of) =>
      living(of)
        .filter(([, { state }]) => state === 'serving')
        .sort(([, one], [, other]) => other.heardMs - one.heardMs)
        .map(([instance]) => instance),
    living: (of) => living(of).map(([instance]) => instance),
    silent: (of) => instancesOf(of).flatMap(([instance, one]) => (isSilent(one) ? [instance] : [])),
    forget({ tenant, name }, instance) {
      find(tenant, name)?.instances.delete(instance);
    },
    silentMs({ tenant, name }, instance) {
      const known = find(tenant, name)?.instances.get(instance);
      return known ? performance.now() - known.heardMs : Number.POSITIVE_INFINITY;
    },
    listenedMs: () => performance.now() - listeningSinceMs,
    stop() {
      clearInterval(timer);
      endListening();
      watch.stop();
      subscription.unsubscribe();
    },
  };
}

const isSilent = ({ heardMs }: { readonly heardMs: number }) => performance.now() - heardMs >= SERVED_LIVENESS.ttlMs;

function forgetSilent(instances: Map<string, Instance>, forMs: number): void {
  const oldest = performance.now() - forMs;
  for (const [instance, { heardMs }] of instances) if (heardMs < oldest) instances.delete(instance);
}
