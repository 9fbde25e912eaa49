/** Announces what is served: writes what it is under its key of the registry, once, under a fence. */
import { canonicalJson, STREAMS } from '@coxswain/protocol';
import { JetStreamApiCodes, JetStreamApiError, jetstreamManager } from '@nats-io/jetstream';
import { headers, type MsgHdrs } from '@nats-io/nats-core';
import { isUnheard } from './ask-store.ts';
import { BusNotPreparedError, CoxswainError } from './client-errors.ts';
import type { CommandBus } from './send-command.ts';

const WRITES_MAX = 16;
/** A follower of a cluster may lag behind what was written a moment ago. */
const READ_AGAIN_MS = 50;
const REGISTRY = `KV_${STREAMS.registry}`;

/** One key of the registry. */
export interface Announced<T> {
  readonly name: string;
  readonly subject: string;
  readonly schema: { safeParse(value: unknown): { readonly data?: T | undefined } };
  /** What is announced, since when. */
  value(since: string): T;
  /** Why what stands there may not be replaced by this; null or left out where it may. */
  conflict?(before: T): Error | null;
  /** Headers to store with the announcement, if any. `before` is the announcement that it replaces. */
  headers?(before: Standing<T>, when: When<T>): Readonly<Record<string, string>>;
}

/** What stands under a key of the registry. */
export interface Standing<T> {
  /** Null where nothing is announced, or nothing that fits. */
  readonly value: T | null;
  /** Fencing token for later writes. */
  readonly revision: number;
  readonly headers: MsgHdrs | null;
}

/**
 * Condition of the write. `always`: also replaces another announcement. `where_missing`: keeps an existing one, so that
 * versions do not alternate after a reconnect. `standing`: replaces only exactly this one.
 */
export type When<T> = 'always' | 'where_missing' | { readonly standing: Standing<T> };

/**
 * Writes an announcement under a fence, unless it stands there already: many instances start with the same.
 * @returns what stood there and was another one, or null.
 * @throws BusNotPreparedError where no host has ever run on the bus, CoxswainError, the conflict with what stands there, and what
 *   the bus throws.
 */
export async function announce<T extends { readonly since: string }>(
  bus: CommandBus,
  key: Announced<T>,
  when: When<T>,
): Promise<T | null> {
  const { name, value } = key;
  for (let write = 0; write < WRITES_MAX; write++) {
    const standing = typeof when === 'object' ? when.standing : await announcedNow(bus, key);
    const before = standing.value;
    const problem = before && key.conflict?.(before);
    if (problem) throw problem;
    if (before && (when === 'where_missing' || canonicalJson(before) === canonicalJson(value(before.since))))
      return null;
    const text = canonicalJson(value(new Date().toISOString()));
    if (await written(bus, key.subject, text, standing.revision, key.headers?.(standing, when) ?? {})) return before;
    if (typeof when === 'object') return null;
    await new Promise((resolve) => setTimeout(resolve, READ_AGAIN_MS * write));
  }
  throw new CoxswainError('tool_not_announced', `the announcement of ${name} was overtaken ${WRITES_MAX} times`);
}

/** Takes an announcement back, where one stands there. @throws what the bus throws. */
export async function takeBack<T>(bus: CommandBus, key: Announced<T>): Promise<void> {
  const { value, revision } = await announcedNow(bus, key);
  if (value !== null) await written(bus, key.subject, '', revision, { 'KV-Operation': 'DEL' });
}

/**
 * Reads what stands under a key: its own alone, by a subject that permissions can name. A key of a worker has no right to ask
 * whether the registry is there; a direct get without a subscriber says that it is not.
 * @throws as {@link announce}.
 */
export async function announcedNow<T>(bus: CommandBus, { subject, schema }: Announced<T>): Promise<Standing<T>> {
  const manager = await jetstreamManager(bus.nc, { checkAPI: false });
  const stored = await manager.direct.getMessage(REGISTRY, { last_by_subj: subject }).catch((error: unknown) => {
    if (isUnheard(error) && bus.nc.info?.jetstream !== false) throw new BusNotPreparedError({ cause: error });
    throw error;
  });
  if (!stored) return { value: null, revision: 0, headers: null };
  const isTakenBack = stored.header.get('KV-Operation') !== '';
  const value = isTakenBack ? null : announcementIn(stored.data, schema);
  return { value, revision: stored.seq, headers: stored.header };
}

async function written(
  bus: CommandBus,
  subject: string,
  text: string,
  revision: number,
  notes: Readonly<Record<string, string>>,
): Promise<boolean> {
  const head = headers();
  for (const [name, note] of Object.entries(notes)) head.set(name, note);
  try {
    await bus.js.publish(subject, text, { expect: { lastSubjectSequence: revision }, headers: head });
    return true;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamWrongLastSequence) return false;
    throw error;
  }
}

function announcementIn<T>(value: Uint8Array, schema: Announced<T>['schema']): T | null {
  try {
    return schema.safeParse(JSON.parse(new TextDecoder().decode(value))).data ?? null;
  } catch {
    // No JSON: somebody else's value, which is replaced.
    return null;
  }
}
