/** Announcements of tools, personas and hook services: each is one key of the registry. */
import { canonicalJson, subjects } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { isRemovedKey, readKey, replaceKey } from '../registry.ts';
import type { StoredMessage } from '../stream-reader.ts';
import { type ValueSchema, valueIn } from '../value-in.ts';
import type { ServedAddress } from './address.ts';

/** What a service announces. */
export interface Announcement<T> {
  readonly at: Pick<ServedAddress, 'kind' | 'tenant' | 'name'>;
  readonly schema: ValueSchema<T>;
  /** Builds it. `since`: ISO 8601 time of the announcement. `before`: the one that it replaces, if any. */
  value(since: string, before: T | null): T;
  /** The error if it must not replace the existing one; null or absent if it may. */
  conflict?(before: T): Error | null;
  /** Headers to store with it, if any. */
  headers?(before: StoredAnnouncement<T>, when: When<T>): Readonly<Record<string, string>>;
}

/** The stored announcement of a service. */
export interface StoredAnnouncement<T> {
  /** Null if there is none, or if the stored value does not match the schema: then an announcement replaces it. */
  readonly value: T | null;
  /** Sequence of its last write; 0 if it was never written. */
  readonly revision: number;
  readonly headers: StoredMessage['headers'] | null;
}

/**
 * Condition of the write. `always`: also replaces another announcement. `where_missing`: keeps an existing one, so that
 * versions do not alternate after a reconnect. `replacing`: replaces only this one.
 */
export type When<T> = 'always' | 'where_missing' | { readonly replacing: StoredAnnouncement<T> };

/**
 * Writes an announcement, unless the same one exists: many instances start with the same announcement.
 * @returns the announcement that this one replaced; null if it replaced none.
 * @throws as `replaceKey`; the error of `conflict`.
 */
export async function announce<T extends { readonly since: string }>(
  nc: NatsConnection,
  announcement: Announcement<T>,
  when: When<T>,
): Promise<T | null> {
  const { at, value, conflict, headers } = announcement;
  let replaced: T | null = null;
  const isWritten = await replaceKey(nc, subjectOf(at), `the announcement of ${at.name}`, (stored) => {
    const current = announcementIn(announcement, stored);
    const before = current.value;
    if (typeof when === 'object' && when.replacing.revision !== current.revision) return undefined;
    const problem = before && conflict?.(before);
    if (problem) throw problem;
    if (before && (when === 'where_missing' || canonicalJson(before) === canonicalJson(value(before.since, before))))
      return undefined;
    replaced = before;
    return { value: value(new Date().toISOString(), before), headers: headers?.(current, when) ?? {} };
  });
  return isWritten ? replaced : null;
}

/** Reads the stored announcement of a service. @throws as `readKey`. */
export async function readAnnouncement<T>(
  nc: NatsConnection,
  announcement: Pick<Announcement<T>, 'at' | 'schema'>,
): Promise<StoredAnnouncement<T>> {
  return announcementIn(announcement, await readKey(nc, subjectOf(announcement.at)));
}

/** Removes the announcement of a service. @returns false if there is none. @throws as `replaceKey`. */
export async function removeAnnouncement(nc: NatsConnection, at: Announcement<unknown>['at']): Promise<boolean> {
  return removeKey(nc, subjectOf(at), `the announcement of ${at.name}`);
}

/** Removes a key of the registry. @returns false if it does not exist. @throws as `replaceKey`. */
export async function removeKey(nc: NatsConnection, subject: string, what: string): Promise<boolean> {
  return replaceKey(nc, subject, what, (stored) => (stored && !isRemovedKey(stored) ? null : undefined));
}

const subjectOf = ({ kind, tenant, name }: Announcement<unknown>['at']) => subjects.announcement(kind, tenant, name);

function announcementIn<T>(
  { schema }: Pick<Announcement<T>, 'schema'>,
  stored: StoredMessage | null,
): StoredAnnouncement<T> {
  if (!stored) return { value: null, revision: 0, headers: null };
  const value = isRemovedKey(stored) ? null : valueIn(stored.data, schema);
  return { value, revision: stored.seq, headers: stored.headers };
}
