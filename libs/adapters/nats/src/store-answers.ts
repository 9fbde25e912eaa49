/** Whether the store that holds the sessions can store anything now. */
import { STREAMS } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { answerOf, failureOf, NatsUnavailableError } from './nats-status.ts';
import { wireOf } from './wire.ts';

/** A leader hears from each follower about once a second. */
const SILENT_AFTER_MS = 10_000;

/** What a leader reports of a follower. */
interface Follower {
  readonly offline?: boolean;
  /** How long it has been silent, nanoseconds. */
  readonly active?: number;
}

/**
 * Resolves when the leader of the command stream has answered, and hears a majority of the replicas. A server that answers by itself may
 * be cut off from the others, or have switched its store off, as it does when the disk is full.
 * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError.
 */
export async function storeAnswers(nc: NatsConnection): Promise<void> {
  const answer = await wireOf(nc).request(`$JS.API.STREAM.INFO.${STREAMS.commands}`, new Uint8Array());
  const { error, cluster } = answerOf<{ readonly cluster?: { readonly replicas?: readonly Follower[] } }>(answer);
  if (error) throw failureOf('asking for the command stream', error);
  if (!hasQuorum(cluster?.replicas ?? []))
    throw new NatsUnavailableError(
      'the command stream has no quorum: its leader does not hear a majority of the replicas',
    );
}

/** Whether a leader hears enough of its followers to store a message. It may answer for a while after it has lost them. */
export function hasQuorum(followers: readonly Follower[]): boolean {
  const heard = followers.filter(({ offline, active = 0 }) => !offline && active < SILENT_AFTER_MS * 1_000_000).length;
  return 2 * (heard + 1) > followers.length + 1;
}
