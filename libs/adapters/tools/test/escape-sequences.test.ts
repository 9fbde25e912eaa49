/** The escape sequences that are removed from the output of commands. */
import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { withoutEscapeSequences } from '../src/escape-sequences.ts';

const ESC = '\u001b';

test.each([
  ['no sequence', 'plain [31m text; 100 % (done) ]0;\tand\r\nmore ✓ 日本'],
  ['colours', `${ESC}[31mred${ESC}[0m ${ESC}[1;4;38;5;208mbold${ESC}[m ${ESC}[38;2;1;22;255mrgb${ESC}[39;49m`],
  ['a sequence of one character', '\u009b31mred\u009b0m'],
  ['cursor and lines', `${ESC}[2K${ESC}[1A${ESC}[10;20Hhere${ESC}[J`],
  ['modes', `${ESC}[?25lspinner${ESC}[?25h${ESC}[?1049h${ESC}[?2004l${ESC}=${ESC}>`],
  ['character sets and state', `${ESC}(Bascii${ESC}7 ${ESC}8 ${ESC}c${ESC}M`],
  ['a title', `${ESC}]0;title${'\u0007'}text`],
  ['a link', `${ESC}]8;;https://example.org/a?b=c${'\u0007'}link${ESC}]8;;${'\u0007'} after`],
  ['a link that ends with ST', `${ESC}]8;;https://example.org${ESC}\\link${ESC}]8;;${ESC}\\ after`],
  ['a sequence that is cut off', `end${ESC}[31`],
])('as Node removes it: %s', (_name, text) => {
  expect(withoutEscapeSequences(text)).toBe(stripVTControlCharacters(text));
});

test.each([
  ['a title of several words', `${ESC}]0;make all${'\u0007'}text`, 'text'],
  ['a colour with colons', `${ESC}[38:2::1:2:3mtext`, 'text'],
  ['a saved cursor', `${ESC}7saved${ESC}8`, 'saved'],
  ['a string of the device', `${ESC}P1$r0m${ESC}\\text`, 'text'],
  [
    'a title without an end hides no further line',
    `${ESC}]0;never\nfirst\nsecond${'\u0007'}`,
    '0;never\nfirst\nsecond\u0007',
  ],
])('as a terminal reads it: %s', (_name, text, shown) => {
  expect(withoutEscapeSequences(text)).toBe(shown);
});

// Quadratic time would be hours at this size, which is that of the kept output.
test.each([
  ['parameters of a title', `${ESC}${';#'.repeat(4_000_000)}`, ';#'.repeat(4_000_000).slice(1)],
  ['beginnings of titles', `${ESC}]`.repeat(4_000_000), ''],
  ['beginnings of control sequences', `${ESC}[1;`.repeat(2_000_000), ''],
  ['a title without an end', `${ESC}]${'0;'.repeat(4_000_000)}`, '0;'.repeat(4_000_000)],
  ['parameters without an end', `${ESC}[${'1;'.repeat(4_000_000)}\n`, '\n'],
  ['intermediates without an end', `${ESC}[${' '.repeat(8_000_000)}\n`, '\n'],
])('output that is made to be slow: %s', (_name, text, shown) => {
  // Not by toBe, which would print both texts.
  expect(withoutEscapeSequences(text) === shown).toBe(true);
});
