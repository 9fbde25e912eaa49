/** Announces the hooks of a service in the registry: at the start, after a change, and after the registry was lost. */
import type { StoredMessage } from '@coxswain/bus';
import type { HookHandlers, Log } from '@coxswain/ports';
import { canonicalJson, type HookAnnouncement, subjects, type TenantId } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { readHookServicesOf, registeredHooksOf } from './hook-registry-key.ts';
import { replaceKey } from './registry-keys.ts';
import { NoHostRespondsError } from './tenant-keys.ts';

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
export async function refuseTaken(
  nc: NatsConnection,
  log: Log,
  tenant: TenantId,
  service: string,
  handlers: HookHandlers,
): Promise<void> {
  const own = new Set(idsOf(handlers));
  const others = await readHookServicesOf(nc, tenant).catch((error: Error) => {
    if (!(error instanceof NoHostRespondsError)) throw error;
    log.warn(
      { service },
      'no session host responds: the ids of these hooks are not compared with those of other services',
    );
    return [];
  });
  for (const other of others) {
    if (other.service === service) continue;
    const taken = other.announcement?.registrations.find(({ id }) => own.has(id));
    if (taken) throw new HookIdTakenError(`the hook ${taken.id} is one of the service ${other.service}`);
  }
}

/**
 * Writes a service's registrations to the registry. They replace its previous ones.
 * @param missing write only if the registry has no announcement of the service.
 * @throws HookIdTakenError, NatsUnavailableError, NatsRefusedError.
 */
export async function announce(
  nc: NatsConnection,
  log: Log,
  tenant: TenantId,
  service: string,
  handlers: HookHandlers,
  missing = false,
): Promise<void> {
  await refuseTaken(nc, log, tenant, service, handlers);
  const registrations = handlers.table();
  const next = (stored: StoredMessage | null): HookAnnouncement | undefined => {
    const before = stored ? registeredHooksOf(stored)?.announcement : null;
    // Instances of a service usually announce the same registrations: then there is nothing to write.
    if (before && (missing || canonicalJson(before.registrations) === canonicalJson(registrations))) return undefined;
    return { v: 1, service, since: before?.since ?? new Date().toISOString(), registrations };
  };
  await replaceKey(nc, subjects.announcement('hooks', tenant, service), `the registration of ${service}`, next);
}

/** The distinct hook ids of handlers. */
function idsOf(handlers: HookHandlers): string[] {
  return [...new Set(handlers.table().map(({ id }) => id))];
}
