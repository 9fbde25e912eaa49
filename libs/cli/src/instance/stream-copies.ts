/** How many copies a bus keeps of its streams, and the waiting for those that are asked for. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { BusClient, StreamPresence } from '@coxswain/client';
import { counted } from '../terminal/counted.ts';

/** Copies of the streams that are there. */
export interface Copies {
  /** The fewest and the most that a stream is to have; both 0 where there is no stream. */
  readonly fewest: number;
  readonly most: number;
  /** Streams that have all of theirs, up to date. */
  readonly whole: number;
  readonly streams: number;
}

const LOOKED_EVERY_MS = 500;

/** What the streams have. */
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

/** `1`, or `1 to 3` where streams differ. */
export function copiesText({ fewest, most }: Copies): string {
  return fewest === most ? String(most) : `${fewest} to ${most}`;
}

/**
 * Looks until every stream has its copies, up to date.
 * @param tell what is still to come, each time that it is less.
 * @returns the copies as they are in the end, which is when all are whole or the time is over.
 * @throws what asking the bus throws.
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
