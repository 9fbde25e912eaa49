/**
 * Replaces `regular-expressions.ts` in bundles for browsers, because the engine is large. Hosts check the patterns of a
 * command, and reject an invalid one.
 */
import type * as checked from './regular-expressions.ts';

/** Returns null for every pattern. */
export const regexProblem: typeof checked.regexProblem = () => null;

/** Returns a budget without steps. */
export const regexBudget: typeof checked.regexBudget = () => ({ steps: 0, isExceeded: false });

/** Not available in browsers: hosts evaluate rules and conditions. @throws always. */
export const regexMatches: typeof checked.regexMatches = () => {
  throw new Error('a bundle for browsers cannot evaluate regular expressions');
};
