import { describe, expect, test } from 'vitest';
import { DECISION_MAX_CHARS, printable, printableJson, summarizeArgs } from '../src/args-summary.ts';

test.each([
  ['a colour', '\u001b[31mred', '[31mred'],
  ['a bell and a return', 'a\u0007b\rc', 'abc'],
  ['an 8-bit control', 'a\u009bb', 'ab'],
  ['letters that turn the reading order', 'echo safe \u202e fr- mr\u202c', 'echo safe  fr- mr'],
  ['isolates and marks', '\u2066a\u2069\u200fb\u061c', 'ab'],
  ['line breaks and tabs, which stay', 'a\n\tb', 'a\n\tb'],
  ['other scripts, which stay', 'שלום 漢字 👩‍👩‍👧', 'שלום 漢字 👩‍👩‍👧'],
])('what is shown has none of its power over the terminal: %s', (_what, text, shown) => {
  expect(printable(text)).toBe(shown);
});

describe('a person who decides about a call sees', () => {
  test.each([
    ['what turns the order of reading', 'echo \u202etxt.exe', 'echo \\u202etxt.exe'],
    ['what takes no room', 'r\u200bm\ufeff -rf\u00ad', 'r\\u200bm\\ufeff -rf\\u00ad'],
    ['joiners and selectors next to ASCII', 'r\u200dm\u200c /\ufe0f', 'r\\u200dm\\u200c /\\ufe0f'],
    ['fillers', 'a\u3164b\u115f', 'a\\u3164b\\u115f'],
    ['controls, and line breaks as one line', 'a\u001b[2J\nb\tc', 'a\\u001b[2J⏎b⇥c'],
    ['how many blanks are left out', `ls${' '.repeat(500)}; rm -rf ~`, 'ls [500 blanks] ; rm -rf ~'],
    ['blanks of every kind', `ls${'\n\u00a0\u3000\u2800'.repeat(5)}x`, 'ls [20 blanks] x'],
    ['other scripts as they are', 'می‌خواهم 👩‍👩‍👧 1️⃣ ❤️', 'می‌خواهم 👩‍👩‍👧 1️⃣ ❤️'],
  ])('%s', (_what, command, shown) => {
    expect(summarizeArgs({ command })).toBe(shown);
    expect(summarizeArgs(command)).toBe(shown);
  });

  test('the end of a long command, and how much is left out of its middle', () => {
    const command = `echo ${'a'.repeat(400)}; rm -rf ~`;
    const shown = summarizeArgs({ command });
    expect(shown).toMatch(/^echo a{59} \[… 311 more\] a{30}; rm -rf ~$/);
    expect(shown.length).toBeLessThanOrEqual(120);
    expect(summarizeArgs({ command }, DECISION_MAX_CHARS)).toBe(command);
  });

  test('the end of each of several arguments', () => {
    const shown = summarizeArgs({ cwd: 'b'.repeat(600), command: `${'a'.repeat(600)}END` }, DECISION_MAX_CHARS);
    expect(shown).toMatch(/^command: a+ \[… \d+ more\] a+END, cwd: b+/);
    expect(shown.length).toBeLessThanOrEqual(DECISION_MAX_CHARS);
  });
});

test.each([
  ['what turns the order of reading', { command: 'rm \u202e txt.' }, '"rm \\u202e txt."'],
  ['what takes no room', { command: 'a\u200bb\ufeff\u00ad' }, '"a\\u200bb\\ufeff\\u00ad"'],
  ['letters that only machines see', { command: 'ls\u{e0072}\u{e006d}' }, '"ls\\udb40\\udc72\\udb40\\udc6d"'],
  ['8-bit controls', { command: '\u009b2J' }, '"\\u009b2J"'],
  ['other scripts, which stay', { command: 'می‌خواهم 👩‍👩‍👧' }, '"می‌خواهم 👩‍👩‍👧"'],
])('arguments that somebody decides about hide nothing: %s', (_what, args, shown) => {
  const text = printableJson(args);
  expect(text).toBe(`{\n  "command": ${shown}\n}`);
  expect(JSON.parse(text)).toEqual(args);
});
