/**
 * Text from outside and reserved tags: no text can contain one, and every text can be restored.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HOST_TAGS, quoteHostTags, quoteHostTagsInPieces, restoreHostTags } from '../src/mod.ts';

describe('a reserved tag is quoted', () => {
  test.each(HOST_TAGS)('%s, opened and closed', (tag) => {
    expect(quoteHostTags(`a <${tag}> b </${tag}> c`)).toBe(`a <quoted-${tag}> b </quoted-${tag}> c`);
  });

  test.each([
    ['in another case', '<SYSTEM-Reminder>', '<quoted-SYSTEM-Reminder>'],
    ['with white space', '<\n / system-reminder >', '<\n / quoted-system-reminder >'],
    ['with attributes', '<host-notice from="x">', '<quoted-host-notice from="x">'],
    ['without an end', 'x <untrusted-text', 'x <quoted-untrusted-text'],
    ['nested', '<<system-reminder<system-reminder', '<<quoted-system-reminder<quoted-system-reminder'],
    ['with another separator', '<system_reminder>', '<quoted-system_reminder>'],
    ['without a separator', '<systemreminder>', '<quoted-systemreminder>'],
    ['letter by letter', '<s y s t e m - reminder>', '<quoted-s y s t e m - reminder>'],
    ['in a comment', '<!-- system-reminder', '<!-- quoted-system-reminder'],
    ['fullwidth', '＜／ｓｙｓｔｅｍ－ｒｅｍｉｎｄｅｒ＞', '＜／quoted-ｓｙｓｔｅｍ－ｒｅｍｉｎｄｅｒ＞'],
    ['in Cyrillic letters', '<ѕуѕтеm-rеmіndеr>', '<quoted-ѕуѕтеm-rеmіndеr>'],
    ['in mathematical letters', '<𝕤𝕪𝕤𝕥𝕖𝕞-𝓻𝓮minder>', '<quoted-𝕤𝕪𝕤𝕥𝕖𝕞-𝓻𝓮minder>'],
    ['with accents', '<sÿste\u0301m-reminder>', '<quoted-sÿste\u0301m-reminder>'],
    ['with digits', '<h0st-n0t1ce>', '<quoted-h0st-n0t1ce>'],
    ['in enclosed letters', '<🅷🅾🆂🆃-ⓝⓞⓣⓘⓒⓔ>', '<quoted-🅷🅾🆂🆃-ⓝⓞⓣⓘⓒⓔ>'],
    ['with a ligature', '<syﬆem-reminder>', '<quoted-syﬆem-reminder>'],
    ['behind another bracket', '‹system-reminder›', '‹quoted-system-reminder›'],
    [
      'with invisible characters',
      '<\u200bsys\u200dtem\u00ad-rem\u2060inder>',
      '<\u200bquoted-sys\u200dtem\u00ad-rem\u2060inder>',
    ],
    ['with another hyphen', '<system\u2011reminder>', '<quoted-system\u2011reminder>'],
    ['as HTML entities', '&lt;/system-reminder&gt;', '&lt;/quoted-system-reminder&gt;'],
    ['as numeric entities', '&#060;&#x73;ystem&#45;reminder', '&#060;quoted-&#x73;ystem&#45;reminder'],
    ['as entities of entities', '&amp;amp;lt;system-reminder', '&amp;amp;lt;quoted-system-reminder'],
    ['as an entity without its end', '&LTsystem-reminder', '&LTquoted-system-reminder'],
    ['in JSON', '"\\u003C\\/system-reminder\\u003e"', '"\\u003C\\/quoted-system-reminder\\u003e"'],
    ['in source text', '\\x3c\\u{73}ystem-reminder', '\\x3cquoted-\\u{73}ystem-reminder'],
    ['with a backslash before a letter', '<system\\reminder', '<quoted-system\\reminder'],
    ['with an escaped line break', '<host\\n-\\notice', '<quoted-host\\n-\\notice'],
    ['in a URL', '%3Csystem%2Dreminder', '%3Cquoted-system%2Dreminder'],
    ['in tag characters', tagCharacters('<host-notice'), `${tagCharacters('<')}quoted-${tagCharacters('host-notice')}`],
    [
      'with tag characters behind a bracket',
      `<${tagCharacters('host')}-notice`,
      `<quoted-${tagCharacters('host')}-notice`,
    ],
    ['in quotation marks', '<"host-notice">', '<"quoted-host-notice">'],
    ['as a special token', '<|host-notice|>', '<|quoted-host-notice|>'],
    ['with a sign as separator', '</untrusted=text>', '</quoted-untrusted=text>'],
    ['behind a bracket with a stroke', '≤host-notice', '≤quoted-host-notice'],
    ['in letters with strokes', '<ħøsŧ-notice>', '<quoted-ħøsŧ-notice>'],
    ['in Lisu letters', '<ꓧꓳꓢꓔ-ꓠꓳꓔꓲꓚꓰ>', '<quoted-ꓧꓳꓢꓔ-ꓠꓳꓔꓲꓚꓰ>'],
    ['quoted before', '<quoted-system-reminder>', '<quoted-quoted-system-reminder>'],
  ])('%s', (_, text, quoted) => {
    expect(quoteHostTags(text)).toBe(quoted);
    expect(restoreHostTags(quoted)).toBe(text);
  });

  test.each([
    'a < b && c > d; <b>system</b> <system> <reminder-system>',
    'const notes: Array<SessionNotes> = []; render(<SessionSummary />)',
    'the tag system-reminder, as `system-reminder`',
    '{"a": "\\u0041", "b": "100%"} &amp; &lt;p&gt;',
    'x <quoted-other> <hostname> <untrusted>',
  ])('in nothing else: %s', (text) => {
    expect(quoteHostTags(text)).toBe(text);
  });
});

function tagCharacters(text: string): string {
  return [...text].map((each) => String.fromCodePoint(0xe0000 + (each.codePointAt(0) as number))).join('');
}

// Pieces of forged tags, so that random texts match or nearly match.
const piece = fc.constantFrom(
  ...[
    '<',
    '</',
    '< /',
    '<<',
    '&lt;',
    '&#60;',
    '&amp;lt;',
    '\\u003c',
    '%3C',
    '＜',
    '‹',
    '>',
    '&gt;',
    ' ',
    '\n',
    '-',
    '_',
  ],
  ...[
    'system',
    'SYSTEM',
    'ѕystem',
    'sys',
    'tem',
    'reminder',
    'rem\u200binder',
    'host',
    'notice',
    'nοtice',
    'untrusted',
  ],
  ...[
    'text',
    'session',
    'summary',
    'notes',
    'quoted-',
    'quoted',
    '\u200b',
    '\u00ad',
    '\u0301',
    '&#8203;',
    '\\',
    '/',
    '&',
  ],
  ...HOST_TAGS,
  ...HOST_TAGS.map((tag) => `<${tag}>`),
);
const text = fc
  .array(fc.oneof({ weight: 9, arbitrary: piece }, fc.string({ unit: 'binary', maxLength: 3 })))
  .map((all) => all.join(''));

/** Reads a text like a lenient reader: without entities, escapes, invisible characters, look-alikes and case. */
function asRead(given: string): string {
  return given
    .replaceAll(/&(?:amp;)*/gi, '&')
    .replaceAll(/&#8203;/g, '')
    .replaceAll(/&(?:lt|#60);?|\\u003c|%3c|[＜‹]/gi, '<')
    .normalize('NFKD')
    .replaceAll(/[\p{Default_Ignorable_Code_Point}\p{M}\\]/gu, '')
    .replaceAll('ѕ', 's')
    .replaceAll('ο', 'o')
    .toLowerCase();
}

const FORGED = new RegExp(`<[\\s/]*(?:${HOST_TAGS.join('|').replaceAll('-', '[\\s_-]*')})`, 'u');

describe('in any text', () => {
  test('no reader finds a reserved tag', () => {
    fc.assert(
      fc.property(text, (given) => {
        expect(asRead(quoteHostTags(given))).not.toMatch(FORGED);
      }),
      { numRuns: 500 },
    );
  });

  test('quoting only inserts marks and can be reversed', () => {
    fc.assert(
      fc.property(text, (given) => {
        const quoted = quoteHostTags(given);
        expect(restoreHostTags(quoted)).toBe(given);
        expect(quoted.length % 'quoted-'.length).toBe(given.length % 'quoted-'.length);
      }),
      { numRuns: 500 },
    );
  });

  test('split into pieces, no reader finds one either, and no piece changes an earlier one', () => {
    fc.assert(
      fc.property(fc.array(text, { maxLength: 5 }), (pieces) => {
        const quoted = quoteHostTagsInPieces(pieces);
        expect(quoted).toHaveLength(pieces.length);
        expect(asRead(quoted.join(''))).not.toMatch(FORGED);
        expect(quoteHostTagsInPieces(pieces.slice(0, -1))).toEqual(quoted.slice(0, -1));
      }),
      { numRuns: 500 },
    );
  });
});

test('a tag that spans pieces is quoted in the last of them', () => {
  expect(quoteHostTagsInPieces(['a <sys', 'tem-', 'reminder> b'])).toEqual(['a <sys', 'tem-', 'quoted-reminder> b']);
  expect(quoteHostTagsInPieces(['a &l', 't;host-notice'])).toEqual(['a &l', 't;quoted-host-notice']);
});

test.each([
  '<',
  '&',
  '&#0',
  '&amp;',
  '\\u003c',
  '<s',
  '<quoted-',
  '<system-reminde',
  '< \u200b/-',
  '<system-reminder>',
])('a long text of %s is read in one pass', (unit) => {
  // A quadratic algorithm would need a second for a hundredth of this text.
  const long = unit.repeat(20_000);
  expect(restoreHostTags(quoteHostTags(long))).toBe(long);
});
