/** How sessions are asked to suspend themselves: open, for a time, until a time, until a signal, and what then. */
import type { SuspensionRequest } from '@coxswain/protocol';
import type { Random } from './random.ts';

/** The signals that sessions wait for and clients send. */
export const SIGNALS = ['built', 'paid'] as const;

const DAY_MS = 24 * 60 * 60 * 1_000;

/** A request to suspend. `nowMs`: milliseconds since 1970, for those that say until when. */
export function planSuspension(random: Random, nowMs: number): SuspensionRequest {
  const kind = random.weighted([
    [2, 'open'],
    [5, 'for'],
    [3, 'until'],
    [2, 'long'],
  ] as const);
  const signal = random.chance(kind === 'open' ? 0.6 : 0.35) ? { signal: random.pick(SIGNALS) } : {};
  const reason = random.chance(0.3) ? { reason: 'the build runs' } : {};
  if (kind === 'open') return { ...signal, ...reason };
  const time =
    kind === 'until'
      ? // Now and then a time that has passed by then, which is refused.
        { until: new Date(Math.round(nowMs + random.between(100, 6_000))).toISOString() }
      : { for_ms: kind === 'long' ? random.pick([1, 30, 400]) * DAY_MS : 1 + random.int(5_000) };
  const then = random.pick([
    {},
    { on_timeout: 'resume_with_summary' as const },
    { on_timeout: 'fail' as const },
    { on_timeout: 'resume_with_input' as const, input: 'see how the build went' },
  ]);
  return { ...time, ...then, ...signal, ...reason };
}
