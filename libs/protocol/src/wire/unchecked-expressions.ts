/**
 * Replaces `regular-expressions.ts` in bundles for browsers, without the engine. The gateway checks the patterns of a
 * command, and rejects an invalid one with the same code.
 */
import type * as checked from './regular-expressions.ts';

/** Returns null for every pattern; the gateway checks it. */
export const regexProblem: typeof checked.regexProblem = () => null;

/** Not available in browsers: hosts evaluate rules and conditions. @throws always. */
export const regexMatches: typeof checked.regexMatches = () => {
  throw new Error('a bundle for browsers cannot evaluate regular expressions');
};
