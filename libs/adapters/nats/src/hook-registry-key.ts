/** Reads the registry keys of hook services. */

import type { StoredMessage } from '@coxswain/bus';
import { HookAnnouncement, parseServedKey, STREAMS, type TenantId } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { valueIn } from './read-keys.ts';
import { isTakenBack } from './registry-keys.ts';
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
  const key = parseServedKey(stored.subject);
  if (key?.kind !== 'hooks' || key.instance !== undefined) return null;
  const removed = isTakenBack(stored);
  const announcement = removed ? null : announcementOf(stored.data, key.name);
  if (!removed && !announcement) return null;
  return { tenant: key.tenant, service: key.name, revision: stored.seq, announcement };
}

function announcementOf(data: Uint8Array, service: string): HookAnnouncement | null {
  const announcement = valueIn(data, HookAnnouncement);
  return announcement?.service === service ? announcement : null;
}

/** Lists the hook services of one tenant, including removed ones. @throws as {@link readTenantKeys}. */
export async function readHookServicesOf(nc: NatsConnection, tenant: TenantId): Promise<RegisteredHooks[]> {
  const found = await readTenantKeys(nc, tenant, STREAMS.registry, 'hooks');
  return found.flatMap((stored) => registeredHooksOf(stored) ?? []);
}
