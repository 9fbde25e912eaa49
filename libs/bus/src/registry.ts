/** Keys of the registry. Several processes write each key: it is read through the leader and replaced conditionally. */
import { setTimeout as sleep } from 'node:timers/promises';
import { STREAMS } from '@coxswain/protocol';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { NatsUnavailableError, NoRespondersError, StreamNotFoundError, StreamsMissingError } from './errors.ts';
import { storeMessage } from './store-message.ts';
import { createStreamReader, type StoredMessage } from './stream-reader.ts';
import { isTenantsKey, wireOf } from './wire.ts';

/** Maximum attempts of a write against concurrent writes. */
const WRITES_MAX = 16;
/** A replica may lag behind the leader. The pause before each further read of one grows by this, milliseconds. */
const LAG_MS = 50;
const OPERATION = 'KV-Operation';

/** The new value of a key, and headers to store with it. */
export interface KeyValue {
  readonly value: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Whether a stored message is the marker of a removed key. */
export function isRemovedKey({ headers: head }: Pick<StoredMessage, 'headers'>): boolean {
  return head.get(OPERATION) !== '';
}

/**
 * Reads a registry key. @returns its newest value, or the marker of its removal; null if it never existed.
 * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError; StreamsMissingError if there is no registry.
 */
export async function readKey(nc: NatsConnection, subject: string): Promise<StoredMessage | null> {
  const reader = createStreamReader(wireOf(nc), `KV_${STREAMS.registry}`);
  try {
    // A tenant's key uses the only form of a read that a permission can restrict to a key. Any replica may answer it.
    return await (isTenantsKey(nc) ? reader.last(subject) : reader.leaderLast(subject));
  } catch (error) {
    const isMissing = error instanceof StreamNotFoundError || error instanceof NoRespondersError;
    if (isMissing && nc.info?.jetstream !== false)
      throw new StreamsMissingError(`KV_${STREAMS.registry}`, { cause: error });
    throw error;
  }
}

/**
 * Replaces the value of a registry key.
 * @param what a description of the value for error messages, such as `the registration of policy`.
 * @param next computes the new value from the stored one (null: the key does not exist). Null removes the key;
 *   undefined leaves it unchanged. Called again after each concurrent write.
 * @returns false if the key was left unchanged.
 * @throws as {@link readKey}; NatsUnavailableError also after {@link WRITES_MAX} concurrent writes.
 */
export async function replaceKey(
  nc: NatsConnection,
  subject: string,
  what: string,
  next: (stored: StoredMessage | null) => KeyValue | null | undefined,
): Promise<boolean> {
  for (let write = 0; write < WRITES_MAX; write++) {
    if (write > 0 && isTenantsKey(nc)) await sleep(LAG_MS * write);
    const stored = await readKey(nc, subject);
    const key = next(stored);
    if (key === undefined) return false;
    const head = headers();
    for (const [name, value] of Object.entries(key?.headers ?? {})) head.set(name, value);
    // The write fails if it is based on an outdated value.
    head.set('Nats-Expected-Last-Subject-Sequence', String(stored?.seq ?? 0));
    // A bucket keeps one value per key: the marker replaces the previous value.
    if (key === null) head.set(OPERATION, 'DEL');
    const payload = new TextEncoder().encode(key === null ? '' : JSON.stringify(key.value));
    if (await storeMessage(nc, `writing ${what}`, subject, payload, head)) return true;
  }
  throw new NatsUnavailableError(`${what} failed ${WRITES_MAX} times because of concurrent changes`);
}
