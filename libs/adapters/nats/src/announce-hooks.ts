/** What a hook service announces: in the registry when it starts, when it changes, and where the registry was lost. */
import type { HookHandlers, Log } from '@coxswain/ports';
import { canonicalJson, type HookAnnouncement, STREAMS, subjects, type TenantId } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { onConnectionChange } from './connection-changes.ts';
import { ensureBuckets } from './ensure-streams.ts';
import { readHookServicesOf, registeredHooksOf } from './hook-registry-key.ts';
import { replaceKey } from './registry-keys.ts';
import type { StoredMessage } from './stream-reader.ts';
import { NoHostAnswersError } from './tenant-keys.ts';

/** A hook of this id belongs to another service. */
export class HookIdTakenError extends Error {
  override readonly name = 'HookIdTakenError';
  readonly code = 'hook_id_taken';
}

const TRIED_AGAIN_AFTER_MS = 1_000;

/**
 * Compares the ids of handlers with those of the tenant's other hook services. A tenant's key lists them through a session host. With
 * no host the ids are not compared, and the log says so: hooks have to be registered before the first host serves a session.
 * @throws HookIdTakenError where one is another service's; NatsUnavailableError, NatsRefusedError.
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
    if (!(error instanceof NoHostAnswersError)) throw error;
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
 * Puts a service's registrations into the registry, in the place of those that it had.
 * @param missing only where it has none.
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
    // Many instances start with the same: then there is nothing to say.
    if (before && (missing || canonicalJson(before.registrations) === canonicalJson(registrations))) return undefined;
    return { v: 1, service, since: before?.since ?? new Date().toISOString(), registrations };
  };
  await replaceKey(nc, subjects.hookService(tenant, service), `the registration of ${service}`, next);
}

/**
 * Announces again what a server that was set up anew has lost. What stands in the registry is left as it is: another
 * instance may have announced newer handlers meanwhile.
 * @returns ends that.
 */
export function keepAnnounced(
  nc: NatsConnection,
  log: Log,
  tenant: TenantId,
  service: string,
  handlers: () => HookHandlers,
): () => void {
  let timer: NodeJS.Timeout | undefined;
  let ended = false;
  let told = '';

  // Until it has gone well: sessions that do not know of a policy do not ask it.
  async function again(): Promise<void> {
    try {
      await ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]);
      await announce(nc, log, tenant, service, handlers(), true);
      told = '';
    } catch (error) {
      if (ended) return;
      const { message } = error as Error;
      if (message !== told) log.error({ service, error }, 'the hooks are not announced');
      told = message;
      clearTimeout(timer);
      timer = setTimeout(() => void again(), TRIED_AGAIN_AFTER_MS);
      timer.unref();
    }
  }

  const endListening = onConnectionChange(nc, {
    lost: () => clearTimeout(timer),
    restored: () => void again(),
  });
  return () => {
    ended = true;
    endListening();
    clearTimeout(timer);
  };
}

/** The ids of handlers, each once. */
export function idsOf(handlers: HookHandlers): string[] {
  return [...new Set(handlers.table().map(({ id }) => id))];
}
