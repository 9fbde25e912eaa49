/**
 * Look-alikes: the ASCII character that another character resembles for people and language models.
 *
 * Sources: the compatibility decompositions of Unicode (fullwidth, mathematical, circled, superscript and accented
 * letters, ligatures), the properties of Unicode (white space, dashes, invisible characters), and a table of letters of
 * other scripts based on the confusables of Unicode Technical Standard 39.
 */

/** Characters that resemble the letter (in either case) or sign of their key. Only for the characters of reserved tags. */
const CONFUSABLE: Readonly<Record<string, string>> = {
  a: 'аАαΑɑ⍺Ꭺᴀꓮᗅ',
  c: 'сСϲϹᴄⲥⲤᏟꓚᑕƈ',
  d: 'ԁԀɗᴅᎠⅆꓓđɖᗞ',
  e: 'еЕεΕєЄҽ℮ᴇɛᎬ3ꓰɇ',
  h: 'һҺհНнΗʜᎻհꓧᕼħɦⱨ',
  i: 'іІιΙıɪɩӏӀǀᎥ1l|ꓲɨ',
  m: 'мМΜᴍᎷⲘꓟᗰ',
  n: 'ոռηΝɴᴎпПⲚꓠᥒŋ',
  o: 'оОοΟσօՕᴏ०০௦ⲟⲞ0ꓳøɵ೦ഠ໐๐',
  r: 'гГʀᴦⲅᎡᏒяꓣɾɽɼ',
  s: 'ѕЅꜱƽᏚꮪ5$ꓢʂᵴ',
  t: 'тТτΤᴛⲦᎢꓔŧƭʈ7',
  u: 'υսՍᴜʋцμꓴʉ',
  x: 'хХχΧⲭⲬ×ꓫ',
  y: 'уУүҮγΥʏყⲨꓬɏ',
  q: 'ԛգ',
  '<': '＜﹤‹«〈〈⟨❮❰《˂ᐸ≺⧼ᚲ⋖≪⟪⦑≮≤⩽≦⪡⪪⫷⟅',
  '/': '⁄∕⧸╱⟋！!?',
  '-': '_.:·‧・･−⁃ー˗',
  ' ': '\u2800',
};

const LOOKS = new Map<number, string>(
  Object.entries(CONFUSABLE).flatMap(([look, alike]) =>
    [...alike].map((each): [number, string] => [each.codePointAt(0) as number, look]),
  ),
);

const INVISIBLE = /^[\p{Default_Ignorable_Code_Point}\p{M}\p{Cf}]$/u;
const BLANK = /^[\p{White_Space}\p{Cc}]$/u;
const DASH = /^\p{Pd}$/u;
const LETTER_OR_SIGN = /^[a-z</]$/;
/** Enclosed letters without a decomposition: negative circled, negative squared, regional indicators. */
const ENCLOSED = [0x1f150, 0x1f170, 0x1f1e6] as const;

const known = new Map<number, string | null>();
/** Cache for ASCII, the most frequent case. Filled on demand: compiling Unicode properties takes milliseconds. */
const ascii: (string | null | undefined)[] = new Array(128).fill(undefined);

/**
 * Maps a character to what it looks like: a lower-case letter (several for a ligature), `<`, `/`, or `-` for a dash or
 * another separator. White space and control characters become a blank, invisible characters become empty. Null for any
 * other character.
 * @param codePoint a Unicode code point.
 */
export function lookOf(codePoint: number): string | null {
  if (codePoint < 128) {
    const seen = ascii[codePoint];
    if (seen !== undefined) return seen;
    const first = seenAs(codePoint);
    ascii[codePoint] = first;
    return first;
  }
  let look = known.get(codePoint);
  if (look === undefined) {
    look = seenAs(codePoint);
    known.set(codePoint, look);
  }
  return look;
}

function seenAs(codePoint: number): string | null {
  const listed = LOOKS.get(codePoint);
  if (listed !== undefined) return listed;
  const character = String.fromCodePoint(codePoint);
  if (INVISIBLE.test(character)) return '';
  if (BLANK.test(character)) return ' ';
  if (DASH.test(character)) return '-';
  const enclosed = ENCLOSED.find((first) => codePoint >= first && codePoint < first + 26);
  if (enclosed !== undefined) return String.fromCharCode(0x61 + codePoint - enclosed);
  let look = '';
  for (const part of character
    .normalize('NFKD')
    .replace(/[\p{M}()]/gu, '')
    .toLowerCase()) {
    const one = LOOKS.get(part.codePointAt(0) as number) ?? (LETTER_OR_SIGN.test(part) ? part : null);
    if (one === null) return null;
    look += one;
  }
  return look === '' ? null : look;
}
