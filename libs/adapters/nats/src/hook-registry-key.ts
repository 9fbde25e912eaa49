/** The keys of the registry of hook services: read through the leader, written under a fence. */
import { HookAnnouncement, parseHookService, STREAMS, subjects, type TenantId } from '@coxswain/protocol';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { answerOf, isWrongSequence, NatsRefusedError, NatsUnavailableError, type PublishAck } from './nats-status.ts';
import { readKeys, valueIn } from './read-keys.ts';
import { createStreamReader, type StoredMessage, type StreamReader } from './stream-reader.ts';
import { wireOf } from './wire.ts';

/** What stands under a key: an announcement, or null where it was removed. */
export interface RegisteredHooks {
  readonly tenant: TenantId;
  readonly service: string;
  readonly revision: number;
  readonly announcement: HookAnnouncement | null;
}

/** Reads one stored value; null where key or value are none of ours. */
export function registeredHooksOf(
  stored: Pick<StoredMessage, 'subject' | 'seq' | 'data' | 'headers'>,
): RegisteredHooks | null {
  const key = parseHookService(stored.subject);
  if (!key || key.instance !== undefined) return null;
  const removed = stored.headers.get(OPERATION) !== '';
  const announcement = removed ? null : announcementOf(stored.data, key.service);
  if (!removed && !announcement) return null;
  return { tenant: key.tenant, service: key.service, revision: stored.seq, announcement };
}

function announcementOf(data: Uint8Array, service: string): HookAnnouncement | null {
  const announcement = valueIn(data, HookAnnouncement);
  return announcement?.service === service ? announcement : null;
}

const OPERATION = 'KV-Operation';

/** The reader of the registry. */
export function registryReader(nc: NatsConnection): StreamReader {
  return createStreamReader(wireOf(nc), `KV_${STREAMS.registry}`);
}

/** Every service that is registered, of every tenant. @throws NatsUnavailableError, NatsRefusedError. */
export async function readHookServices(nc: NatsConnection): Promise<RegisteredHooks[]> {
  const found = await readKeys(nc, STREAMS.registry, subjects.hookServices);
  return [...found.values()].flatMap((stored) => registeredHooksOf(stored) ?? []);
}

/**
 * The newest beats of instances of hook services, by their subjects, as far as the bucket keeps them.
 * @throws as {@link readHookServices}.
 */
export async function readHookInstances(nc: NatsConnection): Promise<ReadonlyMap<string, Uint8Array>> {
  const found = await readKeys(nc, STREAMS.hosts, subjects.hookInstances);
  return new Map([...found].map(([subject, { data }]) => [subject, data]));
}

/**
 * Replaces what stands under a service's key, if it is still what was read.
 * @returns whether it was: otherwise read again.
 */
export async function writeHookService(
  nc: NatsConnection,
  tenant: string,
  service: string,
  announcement: HookAnnouncement | null,
  expected: number,
): Promise<boolean> {
  const head = headers();
  head.set('Nats-Expected-Last-Subject-Sequence', String(expected));
  // A bucket keeps one value for each key: the marker takes the place of what was there.
  if (announcement === null) head.set(OPERATION, 'DEL');
  const payload = new TextEncoder().encode(announcement === null ? '' : JSON.stringify(announcement));
  const answer = answerOf<PublishAck>(await wireOf(nc).request(subjects.hookService(tenant, service), payload, head));
  if (!answer.error) return true;
  if (isWrongSequence(answer.error)) return false;
  if (answer.error.code === 503) throw new NatsUnavailableError(answer.error.description);
  throw new NatsRefusedError(`writing the registration of ${service}`, answer.error);
}
