/** Keys of the registry. Several processes write each key: it is read through the leader and replaced conditionally. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  answerOf,
  createStreamReader,
  failureOf,
  isTenantsKey,
  isWrongSequence,
  NatsUnavailableError,
  NoRespondersError,
  type PublishAck,
  type StoredMessage,
  wireOf,
} from '@coxswain/bus';
import { STREAMS } from '@coxswain/protocol';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { StreamsMissingError } from './ensure-streams.ts';
import { readEach, reportedSubjects } from './read-keys.ts';

/** Maximum attempts of a write against concurrent writes. */
const WRITES_MAX = 16;
/** Replicas lag behind the leader by milliseconds. The pause before each further read grows by this, milliseconds. */
const LAG_MS = 10;
const OPERATION = 'KV-Operation';

/** Whether a stored message is the marker of a removed key. */
export function isTakenBack({ headers: head }: Pick<StoredMessage, 'headers'>): boolean {
  return head.get(OPERATION) !== '';
}

/**
 * Reads the newest values of the registry keys that match a filter, including markers of removed keys, in the order of
 * writing. They are read through the leader. A replica may lag or lack keys, and a pause, a revoked rule or a hook
 * would be missed.
 * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError; RecordNotServedError if no replica serves a key
 *   that the leader reports.
 */
export async function readRegistry(nc: NatsConnection, filter: string): Promise<readonly StoredMessage[]> {
  const reader = createStreamReader(wireOf(nc), `KV_${STREAMS.registry}`);
  const found = await readEach(await reportedSubjects(reader, filter), (subject) => reader.confirmedLast(subject));
  return found.sort((one, other) => one.seq - other.seq);
}

/**
 * Replaces the value of a registry key.
 * @param what a description of the value for error messages, such as `the registration of policy`.
 * @param next computes the new value from the stored one (null: the key does not exist). Null removes the key;
 *   undefined leaves it unchanged. Called again after each concurrent write.
 * @returns false if the key was left unchanged.
 * @throws NatsUnavailableError, also after {@link WRITES_MAX} concurrent writes; NatsRefusedError, NotPermittedError;
 *   StreamsMissingError for a tenant's key if the registry does not exist.
 */
export async function replaceKey(
  nc: NatsConnection,
  subject: string,
  what: string,
  next: (stored: StoredMessage | null) => object | null | undefined,
): Promise<boolean> {
  const reader = createStreamReader(wireOf(nc), `KV_${STREAMS.registry}`);
  // A tenant's key uses the only form of a read that a permission can restrict to a key. Any replica may answer it. The
  // expected sequence below rejects a write that is based on an older value.
  const isTenants = isTenantsKey(nc);
  for (let write = 0; write < WRITES_MAX; write++) {
    if (isTenants && write > 0) await sleep(LAG_MS * write);
    const stored = await (isTenants ? reader.last(subject).catch(missing) : reader.leaderLast(subject));
    const value = next(stored);
    if (value === undefined) return false;
    const head = headers();
    head.set('Nats-Expected-Last-Subject-Sequence', String(stored?.seq ?? 0));
    // A bucket keeps one value per key: the marker replaces the previous value.
    if (value === null) head.set(OPERATION, 'DEL');
    const payload = new TextEncoder().encode(value === null ? '' : JSON.stringify(value));
    const { error } = answerOf<PublishAck>(await wireOf(nc).request(subject, payload, head));
    if (!error) return true;
    if (!isWrongSequence(error)) throw failureOf(`writing ${what}`, error);
  }
  throw new NatsUnavailableError(`${what} failed ${WRITES_MAX} times because of concurrent changes`);
}

/** Converts "no responders" of a direct get: the stream does not exist. */
function missing(error: unknown): never {
  if (error instanceof NoRespondersError) throw new StreamsMissingError(`KV_${STREAMS.registry}`, { cause: error });
  throw error;
}
