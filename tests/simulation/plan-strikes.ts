/** How instances of tools, personas and hooks fail: which, when, and for how long. */
import type { ServedKind } from '@coxswain/protocol';
import type { Random } from './random.ts';
import type { Strike } from './served/served-processes.ts';

const KINDS: readonly ServedKind[] = ['tools', 'hooks', 'personas'];

/** None in calm schedules, and in a third of the others. */
export function planStrikes(
  random: Random,
  profile: string,
  withinMs: number,
): ({ readonly kind: 'strike'; readonly atMs: number } & Strike)[] {
  if (profile === 'calm' || random.chance(0.35)) return [];
  return Array.from({ length: 2 + random.int(6) }, () => {
    const of = random.pick(KINDS);
    const how = random.weighted([
      [4, 'kill'],
      [4, 'freeze'],
      [2, 'stop'],
    ] as const);
    const all = random.chance(0.12);
    return {
      kind: 'strike',
      atMs: random.between(0, random.chance(0.5) ? withinMs : withinMs / 3),
      of,
      how,
      ...(all ? { all } : {}),
      when: all
        ? 'now'
        : random.pick(['now', 'requested', of === 'tools' ? 'held' : 'requested', 'started', 'started'] as const),
      // Longer than an instance may be silent, now and then.
      forMs: random.chance(0.1) ? random.between(5_000, 20_000) : random.between(100, 5_000),
    };
  });
}
