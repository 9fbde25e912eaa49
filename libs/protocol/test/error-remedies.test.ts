/** Every code of the catalogue says what it means, what becomes of it, and what one can do. */
import { expect, test } from 'vitest';
import { type CatalogueEntry, ERROR_CATALOGUE } from '../src/mod.ts';

const entries = Object.entries<CatalogueEntry>(ERROR_CATALOGUE);

/** Why a text is no remedy for somebody who has nothing but the code and the message, or null. */
function remedyProblem(text: string): string | null {
  if (/^Nothing\.?$/.test(text)) return 'says nothing, and not why';
  if (text.split(/\s+/).length < 4) return 'is too short to say what, and where';
  return /[.!)]$/.test(text) ? null : 'is no sentence';
}

test.each(entries)('%s says what one can do', (_code, { caller }) => {
  expect(remedyProblem(caller)).toBeNull();
});

test.each(entries)('%s says what it means, and what becomes of it', (_code, { meaning, runtime, caller }) => {
  for (const text of [meaning, runtime]) expect(text).toMatch(/^\S.*\S[.)]$/s);
  expect(caller).not.toBe(meaning);
});

test.each(['Nothing.', 'Correct it.', 'See the message', 'Give another --port, or none'])('%j is no remedy', (text) => {
  expect(remedyProblem(text)).not.toBeNull();
});
