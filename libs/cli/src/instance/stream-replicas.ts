/** The replicas of the streams of a bus, and the wait for requested ones. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { BusClient, StreamPresence } from '@coxswain/client';
import { counted } from '../terminal/mod.ts';

/** The replicas of the existing streams. */
export interface Replicas {
  /** The lowest and the highest number of replicas that a stream should have; both 0 without streams. */
  readonly fewest: number;
  readonly most: number;
  /** Streams with all their replicas, up to date. */
  readonly complete: number;
  readonly streams: number;
}

const POLL_MS = 500;

/** Counts the replicas of the existing streams. */
export function countReplicas(streams: readonly StreamPresence[]): Replicas {
  const there = streams.filter(({ present }) => present);
  const numbers = there.map(({ copies }) => copies);
  return {
    fewest: numbers.length === 0 ? 0 : Math.min(...numbers),
    most: numbers.length === 0 ? 0 : Math.max(...numbers),
    complete: there.filter(({ copies, current }) => current >= copies).length,
    streams: there.length,
  };
}

/** The number as text: `1`, or `1 to 3` if streams differ. */
export function replicasText({ fewest, most }: Replicas): string {
  return fewest === most ? String(most) : `${fewest} to ${most}`;
}

/**
 * Waits until every stream has all its replicas up to date.
 * @param withinMs the time limit, in ms.
 * @param report prints the number of incomplete streams each time that it decreases.
 * @returns the replicas when all are complete, or when the time is over.
 * @throws the errors of the bus.
 */
export async function awaitReplicas(
  client: Pick<BusClient, 'busInfo'>,
  withinMs: number,
  report: (text: string) => void,
): Promise<Replicas> {
  const giveUpAtMs = performance.now() + withinMs;
  let reported = Number.POSITIVE_INFINITY;
  for (;;) {
    const replicas = countReplicas((await client.busInfo()).streams);
    const missing = replicas.streams - replicas.complete;
    if (missing === 0 || performance.now() >= giveUpAtMs) return replicas;
    if (missing < reported)
      report(`${counted(missing, 'stream')} of ${replicas.streams} still ${missing === 1 ? 'copies' : 'copy'}`);
    reported = missing;
    await sleep(POLL_MS);
  }
}
