import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  cutGraphemes,
  cutMiddle,
  cutText,
  cutTextToEnd,
  hasVisibleText,
  PieceJoiner,
  toWellFormed,
  unwritableMember,
} from '../src/mod.ts';

const FAMILY = '👨‍👩‍👧';
/** Texts of surrogate pairs, halves of pairs, clusters and plain letters. */
const anyText = fc.string({ unit: fc.constantFrom('a', 'é', '\ud83d', '\ude00', '😀', FAMILY, '\u0301') });

describe('a text is cut', () => {
  test('between code points, at its beginning and at its end', () => {
    expect(cutText('a😀b', 2)).toBe('a');
    expect(cutText('a😀b', 3)).toBe('a😀');
    expect(cutTextToEnd('a😀b', 2)).toBe('b');
    expect(cutTextToEnd('a😀b', 3)).toBe('😀b');
    expect(cutText('abc', 0)).toBe('');
    expect(cutTextToEnd('abc', 0)).toBe('');
  });

  test('between grapheme clusters for people, unless one cluster is longer than the bound', () => {
    expect(cutGraphemes(`ab${FAMILY}c`, 5)).toBe('ab');
    expect(cutGraphemes(`ab${FAMILY}c`, 2 + FAMILY.length)).toBe(`ab${FAMILY}`);
    expect(cutGraphemes('e\u0301e\u0301', 3)).toBe('e\u0301');
    expect(cutGraphemes(FAMILY, 4)).toBe('👨‍');
  });

  test('to a part of itself within the bound, well-formed if the text is', () => {
    fc.assert(
      fc.property(anyText, fc.nat(20), (given, max) => {
        const text = given.toWellFormed();
        for (const cut of [cutText(text, max), cutTextToEnd(text, max), cutGraphemes(text, max)]) {
          expect(cut.length).toBeLessThanOrEqual(max);
          expect(cut.isWellFormed()).toBe(true);
        }
        expect(text.startsWith(cutText(text, max)) && text.startsWith(cutGraphemes(text, max))).toBe(true);
        expect(text.endsWith(cutTextToEnd(text, max))).toBe(true);
        // At most one unit is unused, at half of a pair.
        if (text.length > max) expect(cutText(text, max).length).toBeGreaterThanOrEqual(max - 1);
      }),
    );
  });
});

test('a value is repaired at any depth, in texts and keys, and a well-formed one is returned itself', () => {
  expect(toWellFormed({ a: ['x\ud800', 1, null], '\udc00': { b: '😀' } })).toEqual({
    a: ['x\ufffd', 1, null],
    '\ufffd': { b: '😀' },
  });
  const own = JSON.parse('{"__proto__":{"a":"\\ud800"}}') as object;
  expect(JSON.stringify(toWellFormed(own))).toBe('{"__proto__":{"a":"\ufffd"}}');
  const date = new Date(0);
  expect(toWellFormed({ date }).date).toBe(date);
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), fc.dictionary(anyText, anyText), (value, texts) => {
      expect(toWellFormed(value)).toBe(value);
      expect(unwritableMember(toWellFormed({ value, texts }))).toBeNull();
    }),
  );
});

test('pieces of a stream are shown like the whole text, for any split', () => {
  fc.assert(
    fc.property(fc.array(anyText), (pieces) => {
      const joiner = new PieceJoiner();
      const shown = [...pieces.map((piece) => joiner.take(piece)), joiner.end()];
      expect(shown.every((piece) => piece.isWellFormed())).toBe(true);
      expect(shown.join('')).toBe(pieces.join('').toWellFormed());
    }),
  );
});

test('a text of invisible characters has no visible text', () => {
  for (const text of [
    '',
    ' \n\t',
    '\u200b',
    '\u200d\u2060\ufeff',
    '\u00ad',
    '\u3164\u115f',
    '\u2800',
    '\ufe0f',
    '\u0000',
  ])
    expect([text, hasVisibleText(text)]).toEqual([text, false]);
  for (const text of ['a', '\u200ba', '😀', '.', '\u0301', '字', '\u0600'])
    expect([text, hasVisibleText(text)]).toEqual([text, true]);
});

describe('cutMiddle', () => {
  test.each([
    ['short', 5, 'short'],
    ['a'.repeat(60), 10, `${'a'.repeat(9)}…`],
    [`${'a'.repeat(500)}END`, 100, `${'a'.repeat(52)} [… 419 more] ${'a'.repeat(29)}END`],
    ['a'.repeat(1_000_100), 100, `${'a'.repeat(51)} [… 1000018 more] ${'a'.repeat(31)}`],
  ])('%.10s at most %i', (text, maxChars, cut) => {
    expect(cutMiddle(text, maxChars)).toBe(cut);
    expect(cut.length).toBeLessThanOrEqual(maxChars);
  });
});
