/** Lists the live hosts by their heartbeats. */
import { valueIn } from '@coxswain/bus';
import { HostBeat, STREAMS, subjects } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { readKeys } from './read-keys.ts';

/** Maximum pages of a read. Heartbeats that arrive during the read must not prolong it indefinitely. */
const PAGES_MAX = 8;

/**
 * Lists the names of the hosts with a heartbeat in the last second, sorted. Hosts that have announced that they left
 * are omitted.
 * @throws NatsUnavailableError, NatsRefusedError; NotPermittedError if this user may not read heartbeats.
 */
export async function listHosts(nc: NatsConnection): Promise<readonly string[]> {
  const beats = new Map<string, HostBeat>();
  for await (const { subject, data } of readKeys(nc, STREAMS.hosts, subjects.hostBeats, PAGES_MAX)) {
    const beat = valueIn(data, HostBeat);
    if (beat) beats.set(subject, beat);
  }
  return [...beats.values()].flatMap(({ host, state }) => (state === 'left' ? [] : [host])).sort();
}
