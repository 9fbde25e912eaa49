/** Which sessions are deleted, when and how: by a command, or from outside, where it may be broken off and done again. */
import type { Random } from './random.ts';

/** One deletion. Until the session has ended it is refused, and tried again. */
export interface PlannedDeletion {
  readonly how: 'command' | 'outside';
  readonly atMs: number;
  readonly of: string;
  /** Of what is drawn when the time has come. */
  readonly seed: number;
  /** A deletion from outside that is broken off before so many of its steps, counted from the tombstone, and done again. */
  readonly breaksAt?: number;
}

/** The deletions of a schedule; none most of the time. */
export function planDeletions(
  random: Random,
  sessions: readonly { readonly id: string }[],
  withinMs: number,
): PlannedDeletion[] {
  if (random.chance(0.75)) return [];
  const how = random.pick(['command', 'outside'] as const);
  return [
    {
      how,
      of: random.pick(sessions).id,
      atMs: random.between(2_000, withinMs),
      seed: random.int(2 ** 31),
      ...(how === 'outside' && random.chance(0.5) ? { breaksAt: 1 + random.int(4) } : {}),
    },
  ];
}
