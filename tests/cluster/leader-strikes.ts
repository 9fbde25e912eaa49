/** What can happen to whoever leads a stream, one after another. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from './cluster.ts';
import type { Strikes } from './fence-duel.ts';

/** One thing that happens to a leader. */
export type LeaderStrike = 'kill' | 'terminate' | 'pause' | 'step down';

/** How long writers write before the first strike and after each: some hundred appends. */
const BETWEEN_MS = 1_500;

/** A strike and how long nobody led the stream after it, milliseconds. */
export interface Struck {
  readonly strike: LeaderStrike;
  readonly leader: string;
  readonly leaderlessMs: number;
}

/**
 * Strikes the leader of one of the streams after another.
 * @param struck is told what has been done.
 */
export function leaderStrikes(strikes: readonly LeaderStrike[], struck: (what: Struck) => void = () => {}): Strikes {
  return async (cluster, streams) => {
    for (const [i, strike] of strikes.entries()) {
      await sleep(BETWEEN_MS);
      const stream = streams[i % streams.length] as string;
      const leader = await cluster.awaitLeader(stream);
      const atMs = performance.now();
      await strikeNode(cluster, leader, strike, stream);
      await cluster.awaitLeader(stream, leader);
      struck({ strike, leader, leaderlessMs: Math.round(performance.now() - atMs) });
      await sleep(BETWEEN_MS);
      // One that stood still comes back with what it took for its own, and with what was sent to it meanwhile.
      await cluster.restore();
    }
    await sleep(BETWEEN_MS);
  };
}

async function strikeNode(cluster: Cluster, name: string, strike: LeaderStrike, stream: string): Promise<void> {
  const node = cluster.node(name);
  switch (strike) {
    case 'kill':
      return node.kill();
    case 'terminate':
      return node.terminate();
    case 'pause':
      return node.pause();
    case 'step down':
      return cluster.stepDown(stream);
  }
}
