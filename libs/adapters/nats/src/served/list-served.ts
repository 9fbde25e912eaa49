/** Lists the announced tools, personas and hook services of a tenant, with their live instances. */
import { isRemovedKey, valueIn } from '@coxswain/bus';
import { Heartbeat, parseServedKey, SERVED_BOUNDS, type ServedKind, STREAMS, type TenantId } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { ensureBuckets } from '../ensure-streams.ts';
import { readTenantKeys } from '../tenant-keys.ts';
import { type AnnouncementOf, KINDS } from './kinds.ts';

/** A live instance, as its heartbeat reports it. */
export interface ListedInstance {
  readonly instance: string;
  readonly state: 'serving' | 'draining' | 'standby';
  readonly since: string | null;
  /** The version of a persona, or the digest of the announcement that the instance of a tool serves. */
  readonly version: string | null;
  /** Number of requests in progress. */
  readonly running: number | null;
}

/** An announced tool, persona or hook service. */
export interface ListedService<A> {
  readonly name: string;
  readonly announcement: A;
  readonly instances: readonly ListedInstance[];
}

/**
 * Lists what is announced of one kind, sorted by name.
 * @throws NoHostRespondsError, NatsUnavailableError, NatsRefusedError, NotPermittedError.
 */
export async function listServed<K extends ServedKind>(
  nc: NatsConnection,
  tenant: TenantId,
  kind: K,
): Promise<ListedService<AnnouncementOf[K]>[]> {
  const { announcements, instances } = await readServed(nc, tenant, kind);
  return [...announcements]
    .map(([name, announcement]) => ({ name, announcement, instances: instances.get(name) ?? [] }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Reads the announcements and the live instances of one kind, by name. @throws as {@link listServed}. */
export async function readServed<K extends ServedKind>(
  nc: NatsConnection,
  tenant: TenantId,
  kind: K,
): Promise<{
  readonly announcements: ReadonlyMap<string, AnnouncementOf[K]>;
  readonly instances: ReadonlyMap<string, readonly ListedInstance[]>;
}> {
  // The bucket of heartbeats is in memory: a restarted server has lost it.
  await ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]);
  const [announced, heartbeats] = await Promise.all([
    readAnnouncements(nc, tenant, kind),
    readTenantKeys(nc, tenant, STREAMS.hosts, kind),
  ]);
  const instances = new Map<string, ListedInstance[]>();
  for (const { subject, data } of heartbeats) {
    const key = parseServedKey(subject);
    const heartbeat = valueIn(data, Heartbeat, SERVED_BOUNDS.heartbeatMaxBytes);
    if (key?.instance === undefined || !heartbeat || heartbeat.state === 'gone') continue;
    const { state, since = null, version = null, running = null } = heartbeat;
    const ofName = instances.get(key.name) ?? [];
    ofName.push({ instance: key.instance, state, since, version, running });
    instances.set(key.name, ofName);
  }
  return { announcements: announced, instances };
}

/** Reads the announcements of one kind, by name. @throws as `readTenantKeys`. */
export async function readAnnouncements<K extends ServedKind>(
  nc: NatsConnection,
  tenant: TenantId,
  kind: K,
): Promise<ReadonlyMap<string, AnnouncementOf[K]>> {
  const { schema, identityOf } = KINDS[kind];
  const found = new Map<string, AnnouncementOf[K]>();
  for (const stored of await readTenantKeys(nc, tenant, STREAMS.registry, kind)) {
    const announcement = isRemovedKey(stored) ? null : valueIn(stored.data, schema);
    if (announcement && identityOf(announcement).name === parseServedKey(stored.subject)?.name)
      found.set(identityOf(announcement).name, announcement);
  }
  return found;
}
