/** Which hosts live on a bus, by their beats. */
import { HostBeat, STREAMS, subjects } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { readKeys, valueIn } from './read-keys.ts';

/** Each host beats a few times a second: what is read once is one page, and hardly ever two. */
const PAGES_MAX = 8;

/**
 * The hosts that have said within the last second that they live, as they call themselves on the bus.
 * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError where this user may not read their beats.
 */
export async function listHosts(nc: NatsConnection): Promise<readonly string[]> {
  const beats = await readKeys(nc, STREAMS.hosts, subjects.hostBeats, PAGES_MAX);
  const hosts = [...beats.values()].flatMap(({ data }) => {
    const beat = valueIn(data, HostBeat);
    return beat === null || beat.state === 'left' ? [] : [beat.host];
  });
  return hosts.sort();
}
