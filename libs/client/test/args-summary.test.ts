import { expect, test } from 'vitest';
import { printable, printableJson, summarizeArgs } from '../src/args-summary.ts';

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

test('what a person approves is what they see', () => {
  expect(summarizeArgs({ command: 'echo \u202etxt.exe' })).toBe('echo txt.exe');
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
