/** Keys of the registry, each written by many: read through the leader, and replaced under a fence. */
import { setTimeout as sleep } from 'node:timers/promises';
import { STREAMS } from '@coxswain/protocol';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { StreamsMissingError } from './ensure-streams.ts';
import {
  answerOf,
  failureOf,
  isWrongSequence,
  NatsUnavailableError,
  NobodyListensError,
  type PublishAck,
} from './nats-status.ts';
import { readEach, reportedSubjects } from './read-keys.ts';
import { createStreamReader, type StoredMessage } from './stream-reader.ts';
import { isTenantsKey, wireOf } from './wire.ts';

/** A write that is overtaken is tried again so often. */
const WRITES_MAX = 16;
/** A replica lags behind the leader for milliseconds. The pause before each further read grows by this. */
const LAG_MS = 10;
const OPERATION = 'KV-Operation';

/** Whether the key was taken back: what stands there is the marker of that. */
export function isTakenBack({ headers: head }: Pick<StoredMessage, 'headers'>): boolean {
  return head.get(OPERATION) !== '';
}

/**
 * The newest values of the registry's keys that a filter stands for, markers of removed keys included, in the order in which they
 * were written. They are read through the leader: a replica may lag or lack keys, and then a pause, a revoked rule or a
 * hook would be missed.
 * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError; RecordNotServedError where no replica serves a key that
 *   the leader reports.
 */
export async function readRegistry(nc: NatsConnection, filter: string): Promise<readonly StoredMessage[]> {
  const reader = createStreamReader(wireOf(nc), `KV_${STREAMS.registry}`);
  const found = await readEach(await reportedSubjects(reader, filter), (subject) => reader.confirmedLast(subject));
  return found.sort((one, other) => one.seq - other.seq);
}

/**
 * Replaces what stands under a key of the registry.
 * @param what the value in words, for messages: `the registration of policy`.
 * @param next what is to stand there, by what does: null takes the key back, undefined leaves it. Asked again where
 *   another was quicker.
 * @returns false where it was left.
 * @throws NatsUnavailableError, also where others were quicker again and again; NatsRefusedError, NotPermittedError;
 *   StreamsMissingError for a tenant's key where there is no registry.
 */
export async function replaceKey(
  nc: NatsConnection,
  subject: string,
  what: string,
  next: (stored: StoredMessage | null) => object | null | undefined,
): Promise<boolean> {
  const reader = createStreamReader(wireOf(nc), `KV_${STREAMS.registry}`);
  // A tenant's key reads by the only form that a permission can bind to a key. A replica answers it, and the fence below refuses
  // a write that follows from an older value.
  const isTenants = isTenantsKey(nc);
  for (let write = 0; write < WRITES_MAX; write++) {
    if (isTenants && write > 0) await sleep(LAG_MS * write);
    const stored = await (isTenants ? reader.last(subject).catch(missing) : reader.leaderLast(subject));
    const value = next(stored);
    if (value === undefined) return false;
    const head = headers();
    head.set('Nats-Expected-Last-Subject-Sequence', String(stored?.seq ?? 0));
    // A bucket keeps one value for each key: the marker takes the place of what was there.
    if (value === null) head.set(OPERATION, 'DEL');
    const payload = new TextEncoder().encode(value === null ? '' : JSON.stringify(value));
    const { error } = answerOf<PublishAck>(await wireOf(nc).request(subject, payload, head));
    if (!error) return true;
    if (!isWrongSequence(error)) throw failureOf(`writing ${what}`, error);
  }
  throw new NatsUnavailableError(`${what} failed ${WRITES_MAX} times because of concurrent changes`);
}

/** A direct get that reaches no subscriber: there is no such stream. */
function missing(error: unknown): never {
  if (error instanceof NobodyListensError) throw new StreamsMissingError(`KV_${STREAMS.registry}`, { cause: error });
  throw error;
}
