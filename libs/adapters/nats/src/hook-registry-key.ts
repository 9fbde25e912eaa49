/** The keys of the registry of hook services, and the beats of their instances. */
import { HookAnnouncement, parseHookService, STREAMS, subjects, type TenantId } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { readKeys, valueIn } from './read-keys.ts';
import { isTakenBack, readRegistry } from './registry-keys.ts';
import type { StoredMessage } from './stream-reader.ts';
import { readTenantKeys } from './tenant-keys.ts';

/** What stands under a key: an announcement, or null where it was removed. */
export interface RegisteredHooks {
  readonly tenant: TenantId;
  readonly service: string;
  readonly revision: number;
  readonly announcement: HookAnnouncement | null;
}

/** Reads one stored value; null where key or value are none of ours. */
export function registeredHooksOf(
  stored: Pick<StoredMessage, 'subject' | 'seq' | 'data' | 'headers'>,
): RegisteredHooks | null {
  const key = parseHookService(stored.subject);
  if (!key || key.instance !== undefined) return null;
  const removed = isTakenBack(stored);
  const announcement = removed ? null : announcementOf(stored.data, key.service);
  if (!removed && !announcement) return null;
  return { tenant: key.tenant, service: key.service, revision: stored.seq, announcement };
}

function announcementOf(data: Uint8Array, service: string): HookAnnouncement | null {
  const announcement = valueIn(data, HookAnnouncement);
  return announcement?.service === service ? announcement : null;
}

/** Every service that is registered, of every tenant. @throws NatsUnavailableError, NatsRefusedError. */
export async function readHookServices(nc: NatsConnection): Promise<RegisteredHooks[]> {
  const found = await readRegistry(nc, subjects.hookServices);
  return found.flatMap((stored) => registeredHooksOf(stored) ?? []);
}

/** The services that one tenant has registered. @throws as {@link readTenantKeys}. */
export async function readHookServicesOf(nc: NatsConnection, tenant: TenantId): Promise<RegisteredHooks[]> {
  const found = await readTenantKeys(nc, tenant, STREAMS.registry, 'hooks');
  return found.flatMap((stored) => registeredHooksOf(stored) ?? []);
}

/**
 * The newest beats of instances of hook services, by their subjects, as far as the bucket keeps them.
 * @throws as {@link readHookServices}.
 */
export async function readHookInstances(nc: NatsConnection): Promise<ReadonlyMap<string, Uint8Array>> {
  const found = await readKeys(nc, STREAMS.hosts, subjects.hookInstances);
  return new Map([...found].map(([subject, { data }]) => [subject, data]));
}
