/** Lists announced personas with their instances, pauses and resumes them, and removes announcements. */
import type { StoredMessage } from '@coxswain/bus';
import {
  Heartbeat,
  PersonaAnnouncement,
  PersonaPause,
  parseServedKey,
  STREAMS,
  subjects,
  type TenantId,
} from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { ensureBuckets } from './ensure-streams.ts';
import { valueIn } from './read-keys.ts';
import { isTakenBack, replaceKey } from './registry-keys.ts';
import { readTenantKeys } from './tenant-keys.ts';

/** An instance that serves a persona, as its heartbeat reports it. */
export interface ListedPersonaInstance {
  readonly instance: string;
  readonly state: 'serving' | 'draining';
  readonly since: string | null;
  readonly version: string;
  /** Number of steps and calls in progress. */
  readonly running: number | null;
}

/** A persona of the registry: announced, or paused, or both. */
export interface ListedPersona {
  readonly name: string;
  /** Null for a paused persona that is not announced. */
  readonly announcement: PersonaAnnouncement | null;
  readonly pause: PersonaPause | null;
  readonly instances: readonly ListedPersonaInstance[];
}

/**
 * Lists the announced or paused personas of a tenant, sorted by name.
 * @throws NoHostRespondsError, NatsUnavailableError, NatsRefusedError, NotPermittedError.
 */
export async function listServedPersonas(nc: NatsConnection, tenant: TenantId): Promise<ListedPersona[]> {
  // The bucket of heartbeats is in memory: a restarted server has lost it.
  await ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]);
  const [announced, paused, beats] = await Promise.all([
    readTenantKeys(nc, tenant, STREAMS.registry, 'personas'),
    readTenantKeys(nc, tenant, STREAMS.registry, 'paused-personas'),
    readTenantKeys(nc, tenant, STREAMS.hosts, 'personas'),
  ]);
  const announcements = valuesIn(announced, PersonaAnnouncement);
  const pauses = valuesIn(paused, PersonaPause);
  const living = beats.flatMap((stored) => instanceOf(stored) ?? []);
  return [...new Set([...announcements.keys(), ...pauses.keys()])].sort().map((name) => ({
    name,
    announcement: announcements.get(name) ?? null,
    pause: pauses.get(name) ?? null,
    instances: living.filter(({ persona }) => persona === name).map(({ persona: _, ...instance }) => instance),
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
  const pause: PersonaPause = { v: 1, since: new Date().toISOString(), ...(reason === undefined ? {} : { reason }) };
  return replaceKey(nc, subjects.personaPause(tenant, name), `the pause of ${name}`, (stored) =>
    stored && !isTakenBack(stored) ? undefined : pause,
  );
}

/** Resumes a paused persona. @returns false if it was not paused. @throws as {@link pausePersona}. */
export async function resumePersona(nc: NatsConnection, tenant: TenantId, name: string): Promise<boolean> {
  return takeBack(nc, subjects.personaPause(tenant, name), `the pause of ${name}`);
}

/** Removes the announcement of a persona. @returns false if there is none. @throws as {@link pausePersona}. */
export async function removeServedPersona(nc: NatsConnection, tenant: TenantId, name: string): Promise<boolean> {
  return takeBack(nc, subjects.announcement('personas', tenant, name), `the announcement of ${name}`);
}

async function takeBack(nc: NatsConnection, subject: string, what: string): Promise<boolean> {
  await ensureBuckets(nc, [STREAMS.registry]);
  return replaceKey(nc, subject, what, (stored) => (stored && !isTakenBack(stored) ? null : undefined));
}

function valuesIn<T>(
  keys: readonly StoredMessage[],
  schema: { safeParse(value: unknown): { readonly data?: T | undefined } },
): Map<string, T> {
  const found = new Map<string, T>();
  for (const stored of keys) {
    const name = parseServedKey(stored.subject)?.name;
    const value = isTakenBack(stored) ? null : valueIn(stored.data, schema);
    if (name !== undefined && value !== null) found.set(name, value);
  }
  return found;
}

function instanceOf({ subject, data }: StoredMessage): (ListedPersonaInstance & { readonly persona: string }) | null {
  const key = parseServedKey(subject);
  const beat = valueIn(data, Heartbeat);
  if (key?.instance === undefined || beat?.version === undefined) return null;
  // Instances of personas do not stand by.
  if (beat.state === 'gone' || beat.state === 'standby') return null;
  const { state, since = null, version, running = null } = beat;
  return { persona: key.name, instance: key.instance, state, since, version, running };
}
