/** The stop conditions in code: they say yes now and then, are slow, throw, or never answer. */
import type { Clock, StopPredicates } from '@coxswain/ports';
import type { Random } from './random.ts';

/** The predicates of one host. */
export function simPredicates(clock: Clock, random: Random): StopPredicates {
  return {
    enough: async (_question, signal) => {
      if (random.chance(0.03)) return new Promise(() => {});
      await clock.sleep(random.between(0, 500), signal);
      if (random.chance(0.1)) throw new Error('it threw');
      return random.chance(0.15);
    },
    never: async (_question, signal) => {
      await clock.sleep(50, signal);
      return false;
    },
  };
}
