/** The pauses of personas, and the list of served personas with them. */
import { isRemovedKey, removeKey, replaceKey, valueIn } from '@coxswain/bus';
import type { Log } from '@coxswain/ports';
import {
  type PersonaAnnouncement,
  PersonaPause,
  parseServedKey,
  STREAMS,
  subjects,
  type TenantId,
} from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { ensureBuckets } from '../ensure-streams.ts';
import { readRegistry, SMALL_READS_MAX } from '../read-keys.ts';
import { readTenantKeys } from '../tenant-keys.ts';
import { watchRegistry } from '../watch-registry.ts';
import { createKnownPauses, type KnownPauses } from './known-pauses.ts';
import { type ListedInstance, readServed } from './list-served.ts';

/**
 * Watches the pauses in the registry. Resolves when every pause is known.
 * @throws NatsUnavailableError, NatsRefusedError.
 */
export async function watchPauses(nc: NatsConnection, log: Log): Promise<Omit<KnownPauses, 'take'>> {
  const known = createKnownPauses(log);
  try {
    for await (const stored of readRegistry(nc, subjects.personaPauses, SMALL_READS_MAX))
      known.take(stored, isRemovedKey(stored));
    const endWatch = await watchRegistry(nc, `$KV.${STREAMS.registry}.paused-personas.>`, log, (stored) =>
      known.take(stored, isRemovedKey(stored)),
    );
    return {
      ...known,
      stop() {
        endWatch();
        known.stop();
      },
    };
  } catch (error) {
    known.stop();
    throw error;
  }
}

/** A persona of the registry: announced, or paused, or both. */
export interface ListedPersona {
  readonly name: string;
  /** Null for a paused persona that is not announced. */
  readonly announcement: PersonaAnnouncement | null;
  readonly pause: PersonaPause | null;
  readonly instances: readonly ListedInstance[];
}

/**
 * Lists the announced or paused personas of a tenant, sorted by name.
 * @throws NoHostRespondsError, NatsUnavailableError, NatsRefusedError, NotPermittedError.
 */
export async function listServedPersonas(nc: NatsConnection, tenant: TenantId): Promise<ListedPersona[]> {
  const [{ announcements, instances }, paused] = await Promise.all([
    readServed(nc, tenant, 'personas'),
    readTenantKeys(nc, tenant, STREAMS.registry, 'paused-personas'),
  ]);
  const pauses = new Map<string, PersonaPause>();
  for (const stored of paused) {
    const name = parseServedKey(stored.subject)?.name;
    const pause = isRemovedKey(stored) ? null : valueIn(stored.data, PersonaPause);
    if (name !== undefined && pause) pauses.set(name, pause);
  }
  return [...new Set([...announcements.keys(), ...pauses.keys()])].sort().map((name) => ({
    name,
    announcement: announcements.get(name) ?? null,
    pause: pauses.get(name) ?? null,
    instances: instances.get(name) ?? [],
  }));
}

/**
 * Pauses a persona: no new step of it starts until it is resumed. The persona need not be served or announced.
 * @returns false if it was paused already; the existing pause stays unchanged.
 * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError, StreamsMissingError.
 */
export async function pausePersona(
  nc: NatsConnection,
  tenant: TenantId,
  name: string,
  reason?: string,
): Promise<boolean> {
  await ensureBuckets(nc, [STREAMS.registry]);
  const value: PersonaPause = { v: 1, since: new Date().toISOString(), ...(reason === undefined ? {} : { reason }) };
  return replaceKey(nc, subjects.personaPause(tenant, name), `the pause of ${name}`, (stored) =>
    stored && !isRemovedKey(stored) ? undefined : { value },
  );
}

/** Resumes a paused persona. @returns false if it was not paused. @throws as {@link pausePersona}. */
export async function resumePersona(nc: NatsConnection, tenant: TenantId, name: string): Promise<boolean> {
  await ensureBuckets(nc, [STREAMS.registry]);
  return removeKey(nc, subjects.personaPause(tenant, name), `the pause of ${name}`);
}
