/**
 * Writes announcements to their keys in the registry, with optimistic concurrency: each write names the last revision.
 */
import { createStreamReader, NoRespondersError, storeMessage, wireOf } from '@coxswain/bus';
import { canonicalJson, STREAMS } from '@coxswain/protocol';
import { headers, type MsgHdrs } from '@nats-io/nats-core';
import { BusNotPreparedError, CoxswainError } from './client-errors.ts';
import type { CommandBus } from './send-command.ts';

const WRITES_MAX = 16;
/** Pause before a retry, times its number: a follower of a cluster may lag behind a recent write. */
const READ_AGAIN_MS = 50;
const REGISTRY = `KV_${STREAMS.registry}`;

/** A key of the registry and the announcement to write there. */
export interface RegistryKey<T> {
  readonly name: string;
  readonly subject: string;
  readonly schema: { safeParse(value: unknown): { readonly data?: T | undefined } };
  /** Builds the announcement. `since`: ISO 8601 time of the announcement. */
  value(since: string): T;
  /** The error if this announcement must not replace the existing one; null or absent if it may. */
  conflict?(before: T): Error | null;
  /** Headers to store with the announcement, if any. `before` is the announcement that it replaces. */
  headers?(before: CurrentEntry<T>, when: When<T>): Readonly<Record<string, string>>;
}

/** The current state of a key of the registry. */
export interface CurrentEntry<T> {
  /** The announcement; null if there is none, or if the value does not match the schema. */
  readonly value: T | null;
  /** Fencing token for later writes. */
  readonly revision: number;
  readonly headers: MsgHdrs | null;
}

/**
 * Condition of the write. `always`: also replaces another announcement. `where_missing`: keeps an existing one, so that
 * versions do not alternate after a reconnect. `replacing`: replaces only this one.
 */
export type When<T> = 'always' | 'where_missing' | { readonly replacing: CurrentEntry<T> };

/**
 * Writes an announcement, unless the same one exists: many instances start with the same announcement.
 * @returns the announcement that this one replaced; null if it replaced none. With `replacing` it is also null if
 *   another write came first.
 * @throws BusNotPreparedError if no session host has used this bus. CoxswainError `tool_not_announced` if concurrent
 *   writes won every retry. The error of `conflict`, and errors of NATS.
 */
export async function announce<T extends { readonly since: string }>(
  bus: CommandBus,
  key: RegistryKey<T>,
  when: When<T>,
): Promise<T | null> {
  const { name, value } = key;
  for (let write = 0; write < WRITES_MAX; write++) {
    const current = typeof when === 'object' ? when.replacing : await readEntry(bus, key);
    const before = current.value;
    const problem = before && key.conflict?.(before);
    if (problem) throw problem;
    if (before && (when === 'where_missing' || canonicalJson(before) === canonicalJson(value(before.since))))
      return null;
    const text = canonicalJson(value(new Date().toISOString()));
    if (await putIfUnchanged(bus, key.subject, text, current.revision, key.headers?.(current, when) ?? {}))
      return before;
    if (typeof when === 'object') return null;
    await new Promise((resolve) => setTimeout(resolve, READ_AGAIN_MS * write));
  }
  throw new CoxswainError('tool_not_announced', `the announcement of ${name} was overtaken ${WRITES_MAX} times`);
}

/** Deletes an announcement if there is one. @throws BusNotPreparedError, and errors of NATS. */
export async function deleteAnnouncement<T>(bus: CommandBus, key: RegistryKey<T>): Promise<void> {
  const { value, revision } = await readEntry(bus, key);
  if (value !== null) await putIfUnchanged(bus, key.subject, '', revision, { 'KV-Operation': 'DEL' });
}

/**
 * Reads one key of the registry. The request names that key in its subject, so a permission can be limited to it. A
 * worker's user may not ask whether the registry exists; a direct get without responders shows that it does not.
 * @throws BusNotPreparedError if no session host has used this bus, and errors of NATS.
 */
export async function readEntry<T>(bus: CommandBus, { subject, schema }: RegistryKey<T>): Promise<CurrentEntry<T>> {
  const reader = createStreamReader(wireOf(bus.nc), REGISTRY);
  const stored = await reader.last(subject).catch((error: unknown) => {
    if (error instanceof NoRespondersError && bus.nc.info?.jetstream !== false)
      throw new BusNotPreparedError({ cause: error });
    throw error;
  });
  if (!stored) return { value: null, revision: 0, headers: null };
  const isDeleted = stored.headers.get('KV-Operation') !== '';
  const value = isDeleted ? null : announcementIn(stored.data, schema);
  return { value, revision: stored.seq, headers: stored.headers };
}

async function putIfUnchanged(
  bus: CommandBus,
  subject: string,
  text: string,
  revision: number,
  notes: Readonly<Record<string, string>>,
): Promise<boolean> {
  const head = headers();
  for (const [name, note] of Object.entries(notes)) head.set(name, note);
  head.set('Nats-Expected-Last-Subject-Sequence', String(revision));
  const payload = new TextEncoder().encode(text);
  return (await storeMessage(bus.nc, 'writing to the registry', subject, payload, head)) !== null;
}

function announcementIn<T>(value: Uint8Array, schema: RegistryKey<T>['schema']): T | null {
  try {
    return schema.safeParse(JSON.parse(new TextDecoder().decode(value))).data ?? null;
  } catch {
    // Not JSON: another program wrote it. The announcement replaces it.
    return null;
  }
}
