/**
 * Every code of the catalogue has a meaning, a reaction of the runtime, and a remedy.
 */
import { expect, test } from 'vitest';
import { type CatalogueEntry, ERROR_CATALOGUE } from '../src/mod.ts';

const entries = Object.entries<CatalogueEntry>(ERROR_CATALOGUE);

/** Why a text is not a remedy for a reader with only the code and the message, or null. */
function remedyProblem(text: string): string | null {
  if (/^Nothing\.?$/.test(text)) return 'says nothing, and not why';
  if (text.split(/\s+/).length < 4) return 'is too short to say what, and where';
  return /[.!)]$/.test(text) ? null : 'is no sentence';
}

test.each(entries)('%s has a remedy', (_code, { caller }) => {
  expect(remedyProblem(caller)).toBeNull();
});

test.each(entries)('%s has a meaning and a reaction of the runtime', (_code, { meaning, runtime, caller }) => {
  for (const text of [meaning, runtime]) expect(text).toMatch(/^\S.*\S[.)]$/s);
  expect(caller).not.toBe(meaning);
});

test.each(['Nothing.', 'Correct it.', 'See the message', 'Give another --port, or none'])(
  '%j is rejected as a remedy',
  (text) => {
    expect(remedyProblem(text)).not.toBeNull();
  },
);
