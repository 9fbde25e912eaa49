/**
 * Globs, conditions and regular expressions: none of them can block a host.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  BOUNDS,
  conditionHolds,
  globMatches,
  hookPatternMatches,
  type Json,
  regexBudget,
  regexMatches,
  regexProblem,
} from '../src/mod.ts';
import { type Condition, parseCondition } from '../src/tools/patterns.ts';

describe('a glob', () => {
  test.each([
    ['', 'anything', true],
    ['*', '', true],
    ['read_file', 'read_file', true],
    ['read_file', 'read_files', false],
    ['read_*', 'read_file', true],
    ['read_*', 'reads', false],
    ['*__*', 'files__read', true],
    ['*file', 'read_file', true],
    ['r?ad', 'read', true],
    ['r?ad', 'rad', false],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'a-c-b', false],
    ['**', 'x', true],
    ['a.c', 'abc', false],
    ['[ab]', 'a', false],
    ['*', '*', true],
    ['\\*', 'x', false],
  ])('%j on %j: %s', (glob, name, matches) => {
    expect(globMatches(glob, name)).toBe(matches);
  });

  test('agrees with an equivalent regular expression', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', '*', '?'), maxLength: 8 });
    const name = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 10 });
    fc.assert(
      fc.property(letters, name, (glob, text) => {
        const same = new RegExp(`^${glob.replaceAll('*', '.*').replaceAll('?', '.')}$`);
        expect(globMatches(glob, text)).toBe(glob === '' || same.test(text));
      }),
    );
  });
});

const holds = (text: string, payload: Json) => {
  const condition = parseCondition(text);
  if (typeof condition === 'string') throw new Error(condition);
  return conditionHolds(condition, payload);
};

describe('a condition', () => {
  const payload = {
    path: '/etc/passwd',
    count: 3,
    text: '3',
    on: true,
    nothing: null,
    list: ['a', { b: 'c' }],
    nested: { deep: 'x' },
    'with-dash': 'y',
  };

  test.each([
    ['path == "/etc/passwd"', true],
    ['path == "/etc"', false],
    ['path != "/etc"', true],
    ['path =~ "^/etc/"', true],
    ['path =~ "passwd$"', true],
    ['path =~ "^/home"', false],
    ['nested.deep == "x"', true],
    ['list.0 == "a"', true],
    ['list.1.b == "c"', true],
    ['with-dash == "y"', true],
    ['count == "3"', true],
    ['count == 3', true],
    ['count == 3.0', true],
    ['count == 4', false],
    ['count != 3', false],
    ['count != 4', true],
    ['count == -3', false],
    ['on == true', true],
    ['on != true', false],
    ['on == false', false],
    ['text == 3', false],
    ['text != 3', true],
    ['missing == 0', false],
    ['missing != 0', true],
    ['on == "true"', true],
    ['nothing == "null"', true],
    ['nested == "{\\"deep\\":\\"x\\"}"', true],
    ['missing == ""', false],
    ['missing != "x"', true],
    ['missing =~ ".*"', false],
    ['path.length == "11"', false],
    ['constructor =~ "."', false],
    ['__proto__.x != "y"', true],
    ['path=="/etc/passwd"', true],
    ['  path  ==  "/etc/passwd"  ', true],
  ])('%s: %s', (text, expected) => {
    expect(holds(text, payload)).toBe(expected);
  });

  test.each([
    ['path', 'expected path =='],
    ['path = "x"', 'expected path =='],
    ["path == 'x'", 'expected path =='],
    ['path == x', 'expected path =='],
    ['== "x"', 'expected path =='],
    ['path == "x" and more', 'expected path =='],
    ['path == "\\q"', 'is not a JSON string'],
    ['path == 5x', 'is not a JSON string, number or boolean'],
    ['path == 05', 'is not a JSON string, number or boolean'],
    ['path == 1e999', 'the number 1e999 is too large'],
    ['path =~ 5', 'needs a regular expression in quotes'],
    ['path =~ "("', 'invalid regular expression'],
    ['path =~ "(?=x)"', 'invalid regular expression'],
  ])('that is invalid names its problem: %s', (text, problem) => {
    expect(parseCondition(text)).toContain(problem);
  });

  test('has a bounded length', () => {
    expect(parseCondition(`path == "${'x'.repeat(BOUNDS.patternMaxChars)}"`)).toContain('a pattern may have');
  });

  test('has a path, an operator and a value', () => {
    expect(parseCondition('a.b-c.0 =~ "x\\"y"')).toEqual({
      path: ['a', 'b-c', '0'],
      operator: '=~',
      value: 'x"y',
    } satisfies Condition);
  });
});

describe('a regular expression', () => {
  test.each(['(?=x)', '(?<!x)', '\\1', '(a)\\1'])('that needs more than linear time is rejected: %s', (source) => {
    expect(regexProblem(source)).toContain('invalid regular expression');
  });

  // A backtracking engine would not finish these during the test.
  test.each([
    ['(a+)+$', 'a', '!'],
    ['(a|aa)+$', 'a', '!'],
    ['(.*)*(.*)*(.*)*x$', 'a', ''],
    ['^(([a-z])+.)+[A-Z]([a-z])+$', 'a', ''],
    ['(x+x+)+y', 'x', ''],
  ])('that is catastrophic in backtracking engines finishes here: %s', (source, unit, end) => {
    expect(regexMatches(source, unit.repeat(50_000) + end)).toBe(false);
    expect(globMatches(`${'*a'.repeat(250)}b`, 'a'.repeat(20_000))).toBe(false);
  });

  test('is not evaluated beyond its budget; the condition of a hook then counts as true', () => {
    const text = 'ab'.repeat(50_000);
    expect(regexMatches('[ab]{400}c', text)).toBeNull();
    expect(hookPatternMatches('text =~ "[ab]{400}c"', '', { text })).toBe(true);
    const budget = regexBudget();
    expect(regexMatches('c', text, budget)).toBe(false);
    expect(budget.steps).toBeLessThan(BOUNDS.regexStepsMax);
  });

  test.each(['((a{100}){100}){10}', 'a{1001}'])('that would grow beyond the bounds is rejected: %s', (source) => {
    expect(regexProblem(source)).toContain('invalid repeat count');
  });

  // At each character of a text the engine may be at each of its instructions.
  test.each(['[ab]{0,1000}[^X]$', '(.{1,31}){1,31}[^x]', '([ab]{0,999}){1}([ab]{0,999}){1}[^ab]'])(
    'with too many counted repeats is rejected: %s',
    (source) => {
      expect(regexProblem(source)).toContain(`the limit is ${BOUNDS.regexInstructionsMax}`);
    },
  );

  test.each(['[A-Za-z0-9+/]{40,512}', 'sk-[A-Za-z0-9]{20,200}', '(?i)rm\\s+-[rf]{1,2}\\s+/', '[0-9a-f]{64}'])(
    'of the usual kind in guards is accepted: %s',
    (source) => {
      expect(regexProblem(source)).toBeNull();
    },
  );
});
