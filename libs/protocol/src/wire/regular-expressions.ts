/**
 * Regular expressions with RE2's algorithm (https://swtch.com/~rsc/regexp/regexp1.html). Matching takes time linear in
 * the text, and {@link regexProblem} bounds the compiled program. So no pattern and no argument can block a host for
 * long.
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

/**
 * Whether a regular expression (RE2 syntax, unanchored) matches anywhere in a text.
 * @param source an expression without a {@link regexProblem}; its size is not checked again.
 * @throws if the expression is invalid.
 */
export function regexMatches(source: string, text: string): boolean {
  return compiled(source).matcher(text).find();
}

const cache = new Map<string, RE2JS>();
const CACHE_MAX = 512;

function compiled(source: string): RE2JS {
  let regex = cache.get(source);
  if (!regex) {
    regex = RE2JS.compile(source);
    if (cache.size >= CACHE_MAX) cache.clear();
    cache.set(source, regex);
  }
  return regex;
}
