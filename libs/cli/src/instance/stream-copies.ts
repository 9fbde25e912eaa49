/** The replicas of the streams of a bus, and the wait for requested ones. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { BusClient, StreamPresence } from '@coxswain/client';
import { counted } from '../terminal/counted.ts';

/** The replicas of the existing streams. */
export interface Copies {
  /** The lowest and the highest number of replicas that a stream should have; both 0 without streams. */
  readonly fewest: number;
  readonly most: number;
  /** Streams with all their replicas, up to date. */
  readonly whole: number;
  readonly streams: number;
}

const LOOKED_EVERY_MS = 500;

/** Counts the replicas of the existing streams. */
export function copiesOf(streams: readonly StreamPresence[]): Copies {
  const there = streams.filter(({ present }) => present);
  const numbers = there.map(({ copies }) => copies);
  return {
    fewest: numbers.length === 0 ? 0 : Math.min(...numbers),
    most: numbers.length === 0 ? 0 : Math.max(...numbers),
    whole: there.filter(({ copies, current }) => current >= copies).length,
    streams: there.length,
  };
}

/** The number as text: `1`, or `1 to 3` if streams differ. */
export function copiesText({ fewest, most }: Copies): string {
  return fewest === most ? String(most) : `${fewest} to ${most}`;
}

/**
 * Waits until every stream has all its replicas up to date.
 * @param withinMs the time limit, in ms.
 * @param tell prints the number of incomplete streams each time that it decreases.
 * @returns the replicas when all are complete, or when the time is over.
 * @throws the errors of the bus.
 */
export async function awaitCopies(
  client: Pick<BusClient, 'busInfo'>,
  withinMs: number,
  tell: (text: string) => void,
): Promise<Copies> {
  const giveUpAtMs = performance.now() + withinMs;
  let told = Number.POSITIVE_INFINITY;
  for (;;) {
    const copies = copiesOf((await client.busInfo()).streams);
    const missing = copies.streams - copies.whole;
    if (missing === 0 || performance.now() >= giveUpAtMs) return copies;
    if (missing < told)
      tell(`${counted(missing, 'stream')} of ${copies.streams} still ${missing === 1 ? 'copies' : 'copy'}`);
    told = missing;
    await sleep(LOOKED_EVERY_MS);
  }
}
