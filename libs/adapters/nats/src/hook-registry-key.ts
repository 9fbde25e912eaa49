/** Reads the registry keys of hook services and the heartbeats of their instances. */
import type { StoredMessage } from '@coxswain/bus';
import { HookAnnouncement, parseHookService, STREAMS, subjects, type TenantId } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { readKeys, valueIn } from './read-keys.ts';
import { isTakenBack, readRegistry } from './registry-keys.ts';
import { readTenantKeys } from './tenant-keys.ts';

/** The value of a registry key: an announcement, or null after a removal. */
export interface RegisteredHooks {
  readonly tenant: TenantId;
  readonly service: string;
  readonly revision: number;
  readonly announcement: HookAnnouncement | null;
}

/** Parses one stored value. @returns null if the key or the value is not one of a hook service. */
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

/**
 * Lists the hook services of all tenants, including removed ones (`announcement: null`).
 * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError, RecordNotServedError.
 */
export async function readHookServices(nc: NatsConnection): Promise<RegisteredHooks[]> {
  const found = await readRegistry(nc, subjects.hookServices);
  return found.flatMap((stored) => registeredHooksOf(stored) ?? []);
}

/** Lists the hook services of one tenant, including removed ones. @throws as {@link readTenantKeys}. */
export async function readHookServicesOf(nc: NatsConnection, tenant: TenantId): Promise<RegisteredHooks[]> {
  const found = await readTenantKeys(nc, tenant, STREAMS.registry, 'hooks');
  return found.flatMap((stored) => registeredHooksOf(stored) ?? []);
}

/**
 * Reads the newest heartbeat of each hook service instance, by subject. The bucket keeps heartbeats for one second.
 * @throws NatsUnavailableError, NatsRefusedError.
 */
export async function readHookInstances(nc: NatsConnection): Promise<ReadonlyMap<string, Uint8Array>> {
  const found = await readKeys(nc, STREAMS.hosts, subjects.hookInstances);
  return new Map([...found].map(([subject, { data }]) => [subject, data]));
}
