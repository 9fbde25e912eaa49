/** What a turn costs as its session grows. Each mark is measured beside fresh sessions, turn about, in the same minute. */
import type { SessionRef } from '@coxswain/protocol';
import type { Bench, Part } from './bench-part.ts';
import { freshRef, publishPrompt, publishStart, runEnded } from './bench-session.ts';
import { type Figure, median, shown } from './figures.ts';
import { warmUp, withBench } from './with-bench.ts';

/** Turns of one run: the session grows by so many with each prompt. */
const LEG = 50;
/** A leg's first turns are left out: the fresh session's are its first ten. */
const SKIPPED = 10;
const REPEATS = 7;

/** The part `growth`. */
export const sessionGrowth: Part = {
  name: 'growth',
  measure: ({ quick }) =>
    withBench(async (bench) => {
      await warmUp(bench);
      const marks = quick ? [100, 1_000] : [100, 1_000, 10_000];
      const long = freshRef();
      const detail: Record<string, { fresh: number[]; grown: number[] }> = {};
      const figures: Figure[] = [];
      let turns = 0;
      const grow = async () => {
        const times = await leg(bench, long, turns === 0);
        turns += LEG;
        return times;
      };
      for (const mark of marks) {
        while (turns < mark) await grow();
        const fresh: number[] = [];
        const grown: number[] = [];
        for (let i = 0; i < REPEATS; i++) {
          fresh.push(median(await leg(bench, freshRef(), true)));
          grown.push(median(await grow()));
        }
        detail[mark] = { fresh, grown };
        figures.push({
          what: `cost per turn at ${mark.toLocaleString('en')} turns ÷ at 10`,
          value: median(grown.map((ms, i) => ms / (fresh[i] as number))),
          unit: '×',
          bar: { atMost: 1.2 },
          from: `${shown(median(grown))} ms beside ${shown(median(fresh))} ms`,
        });
      }
      return { figures, detail };
    }),
};

async function leg({ host, nc }: Bench, ref: SessionRef, first: boolean): Promise<number[]> {
  const ended = runEnded(host, ref);
  if (first) publishStart(nc, ref, 'instant/echo', LEG);
  else publishPrompt(nc, ref);
  await ended;
  const times = await host.call('takeTurnTimes', null);
  return (times[ref.sessionId] ?? []).slice(SKIPPED);
}
