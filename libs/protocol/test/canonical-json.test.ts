/**
 * RFC 8785: one canonical text for each value.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../src/mod.ts';

describe('the examples of RFC 8785', () => {
  test('3.2.2: literals, strings and numbers', () => {
    const value = JSON.parse(
      '{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001], "string": "\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/", "literals": [null, true, false]}',
    );
    expect(canonicalJson(value)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
  });

  test('3.2.3: members in the order of their UTF-16 code units', () => {
    const value = JSON.parse(
      '{"\\u20ac": "Euro Sign", "\\r": "Carriage Return", "\\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One", "\\ud83d\\ude00": "Emoji: Grinning Face", "\\u0080": "Control", "\\u00f6": "Latin Small Letter O With Diaeresis"}',
    );
    expect(Object.values(JSON.parse(canonicalJson(value)) as object)).toHaveLength(7);
    expect([...canonicalJson(value).matchAll(/:"([^"]+)"/g)].map((match) => match[1])).toEqual([
      'Carriage Return',
      'One',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ]);
  });

  test.each([
    [0, '0'],
    [-0, '0'],
    [5e-324, '5e-324'],
    [-5e-324, '-5e-324'],
    [1.7976931348623157e308, '1.7976931348623157e+308'],
    [9007199254740992, '9007199254740992'],
    [295147905179352830000, '295147905179352830000'],
    [9.999999999999997e22, '9.999999999999997e+22'],
    [1e23, '1e+23'],
    [0.000001, '0.000001'],
    [1e-7, '1e-7'],
    [333333333.33333325, '333333333.33333325'],
    [1424953923781206.2, '1424953923781206.2'],
  ])('appendix B: %d is %s', (value, text) => {
    expect(canonicalJson(value)).toBe(text);
  });
});

describe('a value', () => {
  test('round-trips', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' }), (value) => {
        // RFC 8785 writes -0 as 0, as JSON.stringify does.
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test('has the same text for any order of its members', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.gen(), (object, gen) => {
        const keys = gen(fc.shuffledSubarray, Object.keys(object), { minLength: Object.keys(object).length });
        const other: Record<string, unknown> = Object.create(null);
        for (const key of keys) other[key] = object[key];
        expect(canonicalJson(other)).toBe(canonicalJson(object));
      }),
    );
  });

  test('has the same text with any number of members', () => {
    const names = Array.from({ length: 60 }, (_, i) => `k${(i * 37) % 60}`);
    const object = Object.fromEntries(names.map((name) => [name, 1]));
    expect(Object.keys(JSON.parse(canonicalJson(object)) as object)).toEqual([...names].sort());
  });

  test('is unchanged by a second canonicalization', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        const text = canonicalJson(value);
        expect(canonicalJson(JSON.parse(text))).toBe(text);
      }),
    );
  });

  test('keeps half of a surrogate pair: the text of a failed model answer must be recorded', () => {
    expect(canonicalJson({ text: 'a\ud83d' })).toBe('{"text":"a\\ud83d"}');
  });

  test('omits undefined members', () => {
    expect(canonicalJson({ b: undefined, a: 1, c: { d: undefined } })).toBe('{"a":1,"c":{}}');
  });

  test('keeps members named like properties of Object.prototype', () => {
    expect(canonicalJson(JSON.parse('{"__proto__": 1, "constructor": 2}'))).toBe('{"__proto__":1,"constructor":2}');
  });

  test.each([
    ['NaN', Number.NaN],
    ['an infinity', Number.POSITIVE_INFINITY],
    ['undefined', undefined],
    ['undefined in a list', [undefined]],
    ['a bigint', 1n],
    ['a symbol', Symbol('s')],
    ['a function', () => 1],
  ])('outside JSON is refused: %s', (_name, value) => {
    expect(() => canonicalJson(value)).toThrow(TypeError);
  });
});
