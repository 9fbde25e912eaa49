/** Checks whether the store of the sessions can store messages now. */
import { NatsUnavailableError, streamInfo } from '@coxswain/bus';
import { STREAMS } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';

/**
 * A follower that is silent for this time does not count, milliseconds. A leader hears from each one about once a
 * second.
 */
const SILENT_AFTER_MS = 10_000;

/** The raft group of a stream, as the server reports it. */
interface StreamGroup {
  /**
   * Empty or absent while the group has no leader. A member may answer then, and lists all members, including itself.
   */
  readonly leader?: string;
  readonly replicas?: readonly {
    readonly offline?: boolean;
    /** How long it has been silent, nanoseconds; 0 if the answering server has never heard from it. */
    readonly active?: number;
  }[];
}

/**
 * Resolves if the leader of the command stream answers and hears a majority of the replicas. Without this check, a
 * server might answer although it is cut off from the others, or has disabled its store because the disk is full.
 * @throws NatsUnavailableError, also without a quorum; NatsRefusedError, NotPermittedError.
 */
export async function checkStoreQuorum(nc: NatsConnection): Promise<void> {
  const { cluster } = await streamInfo(nc, STREAMS.commands);
  if (!hasQuorum(cluster))
    throw new NatsUnavailableError('the command stream has no quorum: no leader hears a majority of the replicas');
}

/** Whether a leader hears a majority of its replicas, itself included. A server outside a cluster reports no group. */
export function hasQuorum(group: StreamGroup | undefined): boolean {
  if (group === undefined) return true;
  const { leader, replicas: followers = [] } = group;
  if (!leader) return false;
  const current = followers.filter(
    ({ offline, active = 0 }) => !offline && active < SILENT_AFTER_MS * 1_000_000,
  ).length;
  return 2 * (current + 1) > followers.length + 1;
}
