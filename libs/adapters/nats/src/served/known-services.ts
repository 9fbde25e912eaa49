/**
 * The services of one kind that a host knows, by their announcements and heartbeats. Both are untrusted: a faulty or
 * hostile service must not fill the memory or the log of a host, and must not keep the sessions of other tenants awake.
 *
 * KNOWN-1  The names of a tenant, the bytes of their announcements and the instances of a name are bounded. Further ones
 *          are ignored, with a warning.
 * KNOWN-2  A removed name is forgotten after a minute, if no instance of it is left.
 * KNOWN-3  The log lines about one name are limited in rate, and so are the lines about invalid keys. The newest state is
 *          always logged.
 * KNOWN-4  A change wakes only its tenant, and at a limited rate.
 */
import { type Instances, type Rate, RateLimit, type ServedAddress, type StoredMessage, valueIn } from '@coxswain/bus';
import type { Log } from '@coxswain/ports';
import {
  cutText,
  Heartbeat,
  parseServedKey,
  SERVED_BOUNDS,
  SERVED_LIVENESS,
  type ServedKind,
  type TenantId,
} from '@coxswain/protocol';
import { type AnnouncementOf, KINDS } from './kinds.ts';

/** An announced tool, persona or hook service. */
export interface Announced<A> {
  readonly tenant: TenantId;
  readonly name: string;
  readonly announcement: A;
  /** Whether a live instance takes requests, or it was just announced. */
  readonly isServed: boolean;
}

/** The services of one kind. */
export interface KnownServices<A> extends Omit<Instances, 'listenedMs'> {
  /** The announcement; null for an unknown or removed name. */
  find(tenant: TenantId, name: string): A | null;
  /** The announcements of a tenant, or of all tenants, sorted by name. */
  list(tenant?: TenantId): readonly Announced<A>[];
  /**
   * Calls back when an announcement changes, and when a service becomes available or unavailable: after a burst of
   * changes, ten times a second at most.
   * @returns a function that removes the listener.
   */
  onChange(changed: (tenant: TenantId) => void): () => void;
  /** Takes a key of the registry. @param isNew whether it was written while this host listened. */
  take(stored: Pick<StoredMessage, 'subject' | 'seq' | 'data'>, isRemoved: boolean, isNew: boolean): void;
  /** Takes a heartbeat. */
  hear(subject: string, data: Uint8Array): void;
  /** Counts all instances as heard now, after a time without a connection. */
  hearAll(): void;
  /**
   * Marks services whose heartbeats have ceased as unserved. If it is called late, the process or its machine stood
   * still: then all instances count as heard now.
   * @param hearQueued first hears the queued heartbeats; false if silence proves nothing.
   */
  noteCeased(hearQueued: () => Promise<boolean>): Promise<void>;
  /** Forgets removed services. */
  forgetRemoved(): void;
  /** Drops the log lines and calls that are due later. */
  stop(): void;
}

interface Instance {
  heardMs: number;
  state: Heartbeat['state'];
  version: string | undefined;
}

interface Entry<A> {
  readonly of: Tenant<A>;
  readonly name: string;
  announcement: A | null;
  revision: number;
  /** Whether it counts as one of the tenant's names: it was announced since this host listens. */
  isCounted: boolean;
  /** Size of its announcement as it is stored. */
  bytes: number;
  /** When it was announced while this host listened: an instance serves it then. Monotonic clock, milliseconds. */
  announcedMs: number;
  readonly instances: Map<string, Instance>;
  /** When it was last searched for silent instances. */
  searchedMs: number;
  isServed: boolean;
  /** The last logged value of `isServed`. */
  loggedServed: boolean;
  readonly logAnnounced: RateLimit;
  readonly logServed: RateLimit;
  warnedMs: number;
}

interface Tenant<A> {
  readonly id: TenantId;
  readonly names: Map<string, Entry<A>>;
  /** Number of counted names. */
  counted: number;
  /** Sum of the sizes of all announcements. */
  bytes: number;
  /** Number of instances of all names. */
  instances: number;
  /** When all names were last searched for silent instances. */
  searchedMs: number;
  readonly wake: RateLimit;
  warnedMs: number;
}

/**
 * After this silence an instance may be forgotten, milliseconds. The server detects a dead connection within minutes.
 */
const REMEMBERED_MS = 600_000;
const SEARCHED_EVERY_MS = 1_000;
/** Silence during a longer pause between two checks proves nothing: the services may have stood still as well. Milliseconds. */
const LATE_MS = 2_000;
/** How long a removed name is kept, milliseconds: an earlier announcement or pause may still arrive. */
export const REMOVED_KEPT_MS = 60_000;
/** A rollout or a restart is logged at once, a service that changes its state all the time is not. */
export const LOG_RATE: Rate = { burst: 4, everyMs: 10_000 };
/** Wakes of the sessions of one tenant. */
export const WAKE_RATE: Rate = { burst: 8, everyMs: 100 };
/** The minimum time between two warnings about the same bound, milliseconds. */
const WARNED_EVERY_MS = 3_600_000;

/** Creates the empty list of the services of one kind. */
export function createKnownServices<K extends ServedKind>(kind: K, log: Log): KnownServices<AnnouncementOf[K]> {
  type A = AnnouncementOf[K];
  const { schema, identityOf, log: texts } = KINDS[kind];
  const tenants = new Map<TenantId, Tenant<A>>();
  /** Removed names, and when each was removed. */
  const removed = new Map<Entry<A>, number>();
  const listeners = new Set<(tenant: TenantId) => void>();
  /** When the last check for ceased heartbeats ended. */
  let checkedMs = performance.now();
  let invalidKey = '';
  const logInvalid = new RateLimit(
    () => log.warn({ key: cutText(invalidKey, 256) }, `the registry contains an invalid key of ${kind}`),
    LOG_RATE,
  );
  const find = (tenant: TenantId, name: string) => tenants.get(tenant)?.names.get(name);
  const entries = (): Entry<A>[] => [...tenants.values()].flatMap(({ names }) => [...names.values()]);

  function tenantOf(id: TenantId): Tenant<A> {
    const known = tenants.get(id);
    if (known) return known;
    const wake = new RateLimit(() => {
      for (const listener of [...listeners]) listener(id);
    }, WAKE_RATE);
    return {
      id,
      names: new Map(),
      counted: 0,
      bytes: 0,
      instances: 0,
      searchedMs: Number.NEGATIVE_INFINITY,
      wake,
      warnedMs: Number.NEGATIVE_INFINITY,
    };
  }

  /** A name that is not stored yet. */
  function newEntry(tenant: TenantId, name: string): Entry<A> {
    const of = tenantOf(tenant);
    const about = { tenant, [texts.member]: name };
    const entry: Entry<A> = {
      of,
      name,
      announcement: null,
      revision: 0,
      isCounted: false,
      bytes: 0,
      announcedMs: Number.NEGATIVE_INFINITY,
      instances: new Map(),
      searchedMs: Number.NEGATIVE_INFINITY,
      isServed: false,
      loggedServed: false,
      logAnnounced: new RateLimit(() => {
        const version = entry.announcement ? identityOf(entry.announcement).version : undefined;
        const versioned = { ...about, ...(version === undefined ? {} : { version }) };
        log.info(versioned, entry.announcement ? texts.announced : texts.removed);
      }, LOG_RATE),
      logServed: new RateLimit(() => {
        const { isServed, loggedServed, announcement } = entry;
        if (isServed === loggedServed || !announcement) return;
        entry.loggedServed = isServed;
        log[isServed ? 'info' : 'warn'](about, isServed ? texts.available : texts.unavailable);
      }, LOG_RATE),
      warnedMs: Number.NEGATIVE_INFINITY,
    };
    return entry;
  }

  /** Whether the tenant of a name has room for an announcement of this size. Warns if it has not. */
  function hasRoomFor({ of, isCounted, bytes: before }: Entry<A>, bytes: number): boolean {
    const { namesPerTenantMax: max, announcedPerTenantMaxBytes: maxBytes } = SERVED_BOUNDS;
    if ((isCounted || of.counted < max) && of.bytes - before + bytes <= maxBytes) return true;
    warn(
      of,
      { tenant: of.id },
      `more than ${max} ${kind} or ${maxBytes} bytes are announced: further ones are ignored`,
    );
    return false;
  }

  /** Counts the name and the size of an announcement, or of a removed one (0 bytes). */
  function count(entry: Entry<A>, bytes: number): void {
    const { of } = entry;
    of.bytes += bytes - entry.bytes;
    entry.bytes = bytes;
    if (entry.isCounted || bytes === 0) return;
    entry.isCounted = true;
    of.counted++;
  }

  function warn(at: { warnedMs: number }, about: object, message: string): void {
    const nowMs = performance.now();
    if (nowMs - at.warnedMs < WARNED_EVERY_MS) return;
    at.warnedMs = nowMs;
    log.warn(about, message);
  }

  function take(
    { subject, seq, data }: Pick<StoredMessage, 'subject' | 'seq' | 'data'>,
    isRemoved: boolean,
    isNew: boolean,
  ): void {
    const key = parseServedKey(subject);
    const announcement = isRemoved ? null : valueIn(data, schema);
    const isValid = isRemoved || (announcement !== null && identityOf(announcement).name === key?.name);
    if (key?.kind !== kind || key.instance !== undefined || !isValid) {
      invalidKey = subject;
      logInvalid.request();
      return;
    }
    const { tenant, name } = key;
    const isKept = !isNew && tenantOf(tenant).names.size < SERVED_BOUNDS.namesPerTenantMax;
    // Names that were removed before this host started are kept for a minute: their instances may still run calls.
    if (isRemoved && !find(tenant, name) && !isKept) return;
    const entry = find(tenant, name) ?? newEntry(tenant, name);
    const bytes = announcement ? data.length : 0;
    if (entry.revision >= seq || (announcement && !hasRoomFor(entry, bytes))) return;
    count(entry, bytes);
    entry.of.names.set(name, entry);
    tenants.set(tenant, entry.of);
    const isKnown = entry.announcement !== null;
    entry.announcement = announcement;
    entry.revision = seq;
    if (announcement) removed.delete(entry);
    else removed.set(entry, performance.now());
    if (isNew && announcement) {
      entry.announcedMs = performance.now();
      entry.isServed = true;
      entry.loggedServed = true;
    }
    if (announcement || isKnown) entry.logAnnounced.request();
    entry.of.wake.request();
  }

  function hear(subject: string, data: Uint8Array): void {
    const key = parseServedKey(subject);
    // Heartbeats for a service that was never announced are not even parsed.
    const entry = key && find(key.tenant, key.name);
    if (key?.kind !== kind || key.instance === undefined || !entry) return;
    const heartbeat = valueIn(data, Heartbeat, SERVED_BOUNDS.heartbeatMaxBytes);
    if (!heartbeat) return;
    const { of, instances } = entry;
    if (heartbeat.state === 'gone') {
      if (instances.delete(key.instance)) of.instances--;
      entry.announcedMs = Number.NEGATIVE_INFINITY;
      setServed(entry, isServed(entry));
      return;
    }
    const { state, version } = heartbeat;
    if (!instances.has(key.instance)) {
      if (!hasRoomForInstance(entry)) return;
      of.instances++;
    }
    instances.set(key.instance, { heardMs: performance.now(), state, version });
    if (state === 'serving') setServed(entry, true);
  }

  function hasRoomForInstance(entry: Entry<A>): boolean {
    const { of, name, instances } = entry;
    const { instancesPerNameMax, instancesPerTenantMax } = SERVED_BOUNDS;
    const isFull = () => instances.size >= instancesPerNameMax || of.instances >= instancesPerTenantMax;
    const nowMs = performance.now();
    // A search costs more than a heartbeat: new instances must not start one each.
    if (nowMs - entry.searchedMs > SEARCHED_EVERY_MS) {
      entry.searchedMs = nowMs;
      forgetSilent(entry, isFull() ? SERVED_LIVENESS.ttlMs : REMEMBERED_MS);
    }
    if (of.instances >= instancesPerTenantMax && nowMs - of.searchedMs > SEARCHED_EVERY_MS) {
      of.searchedMs = nowMs;
      for (const other of of.names.values()) forgetSilent(other, SERVED_LIVENESS.ttlMs);
    }
    if (!isFull()) return true;
    warn(entry, { tenant: of.id, [texts.member]: name }, 'it has too many instances: further ones are ignored');
    return false;
  }

  function setServed(entry: Entry<A>, served: boolean): void {
    if (entry.isServed === served) return;
    entry.isServed = served;
    if (!entry.announcement) return;
    entry.logServed.request();
    entry.of.wake.request();
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
  const hearAll = () => {
    const nowMs = performance.now();
    for (const { instances } of entries()) for (const instance of instances.values()) instance.heardMs = nowMs;
  };
  const ceased = () => entries().filter((entry) => entry.isServed && !isServed(entry));

  return {
    find: (tenant, name) => find(tenant, name)?.announcement ?? null,
    list: (tenant) =>
      (tenant === undefined ? entries() : [...(tenants.get(tenant)?.names.values() ?? [])])
        .flatMap(({ of, name, announcement, isServed }) =>
          announcement ? [{ tenant: of.id, name, announcement, isServed }] : [],
        )
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    take,
    hear,
    hearAll,
    async noteCeased(hearQueued) {
      if (performance.now() - checkedMs > LATE_MS) hearAll();
      try {
        if (ceased().length > 0 && (await hearQueued())) for (const entry of ceased()) setServed(entry, false);
      } finally {
        checkedMs = performance.now();
      }
    },
    forgetRemoved() {
      const oldestMs = performance.now() - REMOVED_KEPT_MS;
      for (const [entry, removedMs] of removed) {
        const { of, name, instances, isCounted } = entry;
        if (removedMs > oldestMs) continue;
        // A call that has started runs to its end there.
        forgetSilent(entry, REMEMBERED_MS);
        if (instances.size > 0) continue;
        removed.delete(entry);
        of.names.delete(name);
        if (isCounted) of.counted--;
        if (of.names.size === 0) tenants.delete(of.id);
      }
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
      const entry = find(tenant, name);
      if (entry?.instances.delete(instance)) entry.of.instances--;
    },
    silentMs({ tenant, name }, instance) {
      const known = find(tenant, name)?.instances.get(instance);
      return known ? performance.now() - known.heardMs : Number.POSITIVE_INFINITY;
    },
    stop() {
      logInvalid.stop();
      for (const { wake } of tenants.values()) wake.stop();
      for (const { logAnnounced, logServed } of entries()) {
        logAnnounced.stop();
        logServed.stop();
      }
    },
  };
}

const isSilent = ({ heardMs }: { readonly heardMs: number }) => performance.now() - heardMs >= SERVED_LIVENESS.ttlMs;

function forgetSilent({ of, instances }: Entry<unknown>, forMs: number): void {
  const oldest = performance.now() - forMs;
  for (const [instance, { heardMs }] of instances) if (heardMs < oldest && instances.delete(instance)) of.instances--;
}
