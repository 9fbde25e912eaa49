/**
 * Regular expressions with RE2's algorithm (https://swtch.com/~rsc/regexp/regexp1.html). At worst, matching takes time
 * proportional to the length of the text times the size of the compiled program. {@link regexProblem} bounds the
 * program, and a {@link RegexBudget} bounds the product, so that no pattern and no argument can block a host for long.
 *
 * Bundles for browsers contain `unchecked-expressions.ts` instead (`browser` in this package's manifest): the engine is
 * larger than the whole client.
 */
import { RE2JS } from 're2js';
import { BOUNDS } from './bounds.ts';

/** The problem of a regular expression (RE2 syntax) as a clause; null if it is valid and not too large. */
export function regexProblem(source: string): string | null {
  try {
    const size = compiled(source).programSize();
    return size <= BOUNDS.regexInstructionsMax
      ? null
      : `the regular expression ${JSON.stringify(source)} is too large: its counted repeats make ${size} instructions; the limit is ${BOUNDS.regexInstructionsMax}`;
  } catch (error) {
    return `invalid regular expression ${JSON.stringify(source)}: ${(error as Error).message}`;
  }
}

/** What evaluations that belong together may still cost. */
export interface RegexBudget {
  /** For one step, one instruction reads one character. */
  steps: number;
  /** Whether an evaluation was left out because the budget did not cover it. */
  isExceeded: boolean;
}

/** A new budget: {@link BOUNDS}.regexStepsMax. */
export function regexBudget(): RegexBudget {
  return { steps: BOUNDS.regexStepsMax, isExceeded: false };
}

/**
 * Whether a regular expression (RE2 syntax, unanchored) matches anywhere in a text.
 * @param source an expression without a {@link regexProblem}; its size is not checked again.
 * @param budget is reduced by the cost: the length of the text times the size of the program. By default that of one
 *   evaluation.
 * @returns null, without an evaluation and at no cost, if the budget does not cover it. The caller then takes the strict
 *   choice.
 * @throws if the expression is invalid.
 */
export function regexMatches(source: string, text: string, budget: RegexBudget = regexBudget()): boolean | null {
  const regex = compiled(source);
  const cost = regex.programSize() * text.length;
  if (cost > budget.steps) {
    budget.isExceeded = true;
    return null;
  }
  budget.steps -= cost;
  cachedSteps += cost;
  // `test` needs no positions of groups, so it runs on a DFA, which is up to a thousand times as fast as `find`.
  return regex.test(text);
}

const cache = new Map<string, RE2JS>();
const CACHE_MAX = 512;
/** Each expression keeps the states of its DFA, a few bytes per step, up to 8 MiB. Beyond these steps they are dropped. */
const CACHED_STEPS_MAX = 16_000_000;
let cachedSteps = 0;

function compiled(source: string): RE2JS {
  if (cachedSteps > CACHED_STEPS_MAX) {
    cache.clear();
    cachedSteps = 0;
  }
  let regex = cache.get(source);
  if (!regex) {
    regex = RE2JS.compile(source);
    if (cache.size >= CACHE_MAX) cache.clear();
    cache.set(source, regex);
  }
  return regex;
}
