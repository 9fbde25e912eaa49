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
import { readRegistry } from '../read-keys.ts';
import { readTenantKeys } from '../tenant-keys.ts';
import { watchRegistry } from '../watch-registry.ts';
import { type ListedInstance, readServed } from './list-served.ts';

/** The paused personas: none of their steps starts. */
export interface Pauses {
  /** The pause of a persona; null if it is not paused. */
  find(tenant: TenantId, name: string): PersonaPause | null;
  /** Calls back when a persona is paused or resumed. */
  onChange(changed: () => void): () => void;
  stop(): void;
}

/**
 * Watches the pauses in the registry. Resolves when every pause is known.
 * @throws NatsUnavailableError, NatsRefusedError.
 */
export async function watchPauses(nc: NatsConnection, log: Log): Promise<Pauses> {
  const pauses = new Map<string, { readonly revision: number; readonly pause: PersonaPause | null }>();
  const listeners = new Set<() => void>();

  function take(subject: string, revision: number, data: Uint8Array, isRemoved: boolean): void {
    const key = parseServedKey(subject);
    if (key?.kind !== 'paused-personas') return;
    const { tenant, name } = key;
    const id = `${tenant}.${name}`;
    if ((pauses.get(id)?.revision ?? 0) >= revision) return;
    const pause = isRemoved ? null : valueIn(data, PersonaPause);
    pauses.set(id, { revision, pause });
    log.info({ tenant, persona: name }, pause ? 'a persona is paused' : 'a persona is resumed');
    for (const listener of [...listeners]) listener();
  }

  for await (const stored of readRegistry(nc, subjects.personaPauses))
    take(stored.subject, stored.seq, stored.data, isRemovedKey(stored));
  const watch = await watchRegistry(nc, 'paused-personas.>', log);
  void (async () => {
    for await (const { key, revision, value, operation } of watch)
      take(`$KV.${STREAMS.registry}.${key}`, revision, value, operation !== 'PUT');
  })().catch((error: unknown) => log.error({ error }, 'the registry of pauses is no longer watched'));

  return {
    find: (tenant, name) => pauses.get(`${tenant}.${name}`)?.pause ?? null,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    stop: () => watch.stop(),
  };
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
