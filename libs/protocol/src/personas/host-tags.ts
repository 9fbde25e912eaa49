/**
 * Tags reserved for the host in prompts, and the quoting of these tags in text from outside.
 *
 * TAG-1  `quoteHostTags` inserts {@link QUOTED} before the name of every reserved tag. It changes nothing else, so that
 *     a model can read code and data exactly, and `restoreHostTags` restores the text.
 * TAG-2  A tag is recognized in every form that a model could read: any case, white space, attributes, look-alikes,
 *     invisible characters, HTML entities, escapes of JSON and URLs, nested or split over pieces of text.
 * TAG-3  The cost is linear in the text.
 */
import { lookOf } from './look-alikes.ts';

/** The reserved tags. */
export const HOST_TAGS = [
  'host-notice',
  'session-notes',
  'session-summary',
  'system-reminder',
  'untrusted-text',
] as const;
/** A tag of {@link HOST_TAGS}. */
export type HostTag = (typeof HOST_TAGS)[number];

/** The prefix of a reserved tag's name in text from outside. */
export const QUOTED = 'quoted-';

interface TagName {
  /** The name without its separator. */
  readonly letters: string;
  /** Number of letters before the separator. */
  readonly joint: number;
}
const NAMES: readonly TagName[] = HOST_TAGS.map((tag) => ({
  letters: tag.replace('-', ''),
  joint: tag.indexOf('-'),
}));

/** The position of a tag's name. */
interface Found {
  readonly at: number;
  readonly end: number;
}

/** Quotes the reserved tags in a text (TAG-1). */
export function quoteHostTags(text: string): string {
  return (quoteHostTagsInPieces([text]) as [string])[0];
}

/**
 * Quotes host tags in pieces that a model reads one after another. A tag that spans several pieces is quoted in the
 * last one, so that earlier pieces stay unchanged.
 */
export function quoteHostTagsInPieces(pieces: readonly string[]): string[] {
  const found = hostTagsIn(pieces.length === 1 ? (pieces[0] as string) : pieces.join(''));
  if (found.length === 0) return [...pieces];
  let next = 0;
  let start = 0;
  return pieces.map((piece) => {
    const end = start + piece.length;
    let quoted = '';
    let from = 0;
    for (let tag = found[next]; tag && tag.end <= end; tag = found[++next]) {
      const at = Math.max(0, tag.at - start);
      quoted += piece.slice(from, at) + QUOTED;
      from = at;
    }
    start = end;
    return quoted + piece.slice(from);
  });
}

/** Reverses {@link quoteHostTags}. */
export function restoreHostTags(text: string): string {
  let restored = '';
  let from = 0;
  for (const { at } of hostTagsIn(text)) {
    if (!text.startsWith(QUOTED, at)) continue;
    restored += text.slice(from, at);
    from = at + QUOTED.length;
  }
  return restored + text.slice(from);
}

// Possible starts of a tag. The expensive check for `<` runs only after one of these.
const CANDIDATES = /[<＜﹤‹«〈〈⟨❮❰《˂ᐸ≺⧼ᚲ⋖≪⟪⦑≮≤⩽≦⪡⪪⫷⟅\u{e003c}]|&(?:amp;)*(?:lt|#)|\\[ux]|%3c/giu;

function hostTagsIn(text: string): Found[] {
  const found: Found[] = [];
  CANDIDATES.lastIndex = 0;
  for (let candidate = CANDIDATES.exec(text); candidate; candidate = CANDIDATES.exec(text)) {
    const opener = readAt(text, candidate.index, candidate[0] === INVISIBLE_OPENER);
    // Tag characters are invisible to people, and letters for some models. A name in either reading counts.
    const tag = opener.look === '<' ? (nameAt(text, opener.end, false) ?? nameAt(text, opener.end, true)) : null;
    if (tag) found.push(tag);
    CANDIDATES.lastIndex = tag?.end ?? opener.end;
  }
  return found;
}

/** The reserved name after an opener, or null. */
function nameAt(text: string, from: number, readsTags: boolean): Found | null {
  let at = from;
  for (; at < text.length; ) {
    const { look, end } = readAt(text, at, readsTags);
    if (!SIGNS.has(text.slice(at, end)) && (look === null || !BEFORE_NAME.has(look))) break;
    at = end;
  }
  const start = at;
  while (text.startsWith(QUOTED, at)) at += QUOTED.length;
  let readings: readonly Reading[] = [{ letters: '', isJoined: false, before: '' }];
  while (at < text.length && readings.length > 0) {
    const { look, end, letter } = readAt(text, at, readsTags);
    const raw = text.slice(at, end);
    const isPassedOver = look === null ? SIGNS.has(raw) : WITHIN_NAME.has(look);
    const spelled = letter ?? (isPassedOver ? null : look);
    const passed = isPassedOver ? readings.map((reading) => ({ ...reading, isJoined: false })) : [];
    const further = spelled === null ? [] : readings.flatMap((reading) => spellOn(reading, spelled, letter ?? raw));
    if (further.some(({ isWhole }) => isWhole)) return { at: start, end };
    readings = letter === undefined ? [...passed, ...further] : distinct([...passed, ...further]);
    at = end;
  }
  return null;
}

/** One reading of the text after an opener, up to some position. */
interface Reading {
  /** The letters of the name so far. */
  readonly letters: string;
  /** Whether the next letter follows the last one directly. */
  readonly isJoined: boolean;
  /** The last letter as written. */
  readonly before: string;
}

/** Extends a reading with more letters, and says whether they complete a name; empty if no name continues this way. */
function spellOn(
  { letters, isJoined, before }: Reading,
  look: string,
  raw: string,
): (Reading & { isWhole: boolean })[] {
  const read = letters + look;
  const name = NAMES.find((one) => one.letters.startsWith(read) || read.startsWith(one.letters));
  if (!name) return [];
  // Type names such as SessionNotes in Array<SessionNotes> are code, and no tags.
  if (isJoined && letters.length === name.joint && /^[a-z]$/.test(before) && /^[A-Z]$/.test(raw)) return [];
  return [{ letters: read, isJoined: true, before: raw, isWhole: read.length >= name.letters.length }];
}

/**
 * Removes duplicate readings. Their number is bounded by the prefixes of the names, so that the cost stays linear
 * (TAG-3).
 */
function distinct(readings: readonly Reading[]): readonly Reading[] {
  return [...new Map(readings.map((reading) => [reading.letters, reading])).values()];
}

const BEFORE_NAME: ReadonlySet<string> = new Set(['', ' ', '/', '-']);
/** Characters that a model may ignore in a tag, as in `<"host-notice">` and `<host=notice>`. */
const SIGNS: ReadonlySet<string> = new Set('"\'`([{#*+=@^~|');
const WITHIN_NAME: ReadonlySet<string> = new Set(['', ' ', '-']);

// ---- reads one character in any of its forms ----

interface Read {
  /** The look-alike of {@link lookOf}. */
  readonly look: string | null;
  readonly end: number;
  /** The letter of an escape such as `\n`: a reader may see a lone backslash and this letter. */
  readonly letter?: string | undefined;
}

const ENTITY =
  /&(?:amp;)*(?:#0*(\d{1,7})|#x0*([0-9a-f]{1,6})|(lt)|(sol)|(hyphen|dash|lowbar)|(nbsp|ensp|emsp|thinsp|Tab|NewLine)|(shy|zwj|zwnj|ZeroWidthSpace|NoBreak|lrm|rlm));?/iy;
const ENTITY_LOOKS = ['<', '/', '-', ' ', ''] as const;
const ESCAPE = /\\(?:u\{0*([0-9a-f]{1,6})\}|u([0-9a-f]{4})|x([0-9a-f]{2})|([nrt]))/iy;
const PERCENT = /%([0-9a-f]{2})/iy;

// Tag characters of Unicode are invisible. Some models read them as the ASCII characters that they encode.
const TAG_CHARACTERS = 0xe0000;
const INVISIBLE_OPENER = '\u{e003c}';

function readAt(text: string, at: number, readsTags: boolean): Read {
  const codePoint = text.codePointAt(at) as number;
  const end = at + (codePoint > 0xffff ? 2 : 1);
  const stands = codePoint - TAG_CHARACTERS;
  if (readsTags && stands >= 0x20 && stands < 0x7f) return { look: lookOf(stands), end };
  switch (codePoint) {
    case 0x26: {
      const entity = matchAt(ENTITY, text, at);
      if (!entity) return { look: null, end };
      const [, decimal, hex, ...named] = entity;
      const which = named.findIndex((name) => name !== undefined);
      const look =
        decimal !== undefined
          ? lookAt(Number.parseInt(decimal, 10))
          : hex !== undefined
            ? lookAt(Number.parseInt(hex, 16))
            : (ENTITY_LOOKS[which] as string);
      return { look, end: at + entity[0].length };
    }
    case 0x5c: {
      const escaped = matchAt(ESCAPE, text, at);
      // A lone backslash escapes the next character.
      if (!escaped) return { look: '', end };
      const [all, long, four, two] = escaped;
      const hex = long ?? four ?? two;
      const behind = at + all.length;
      if (hex !== undefined) return { look: lookAt(Number.parseInt(hex, 16)), end: behind };
      return { look: ' ', end: behind, letter: lookOf(all.charCodeAt(1)) ?? undefined };
    }
    case 0x25: {
      const percent = matchAt(PERCENT, text, at);
      if (!percent) return { look: null, end };
      return { look: lookAt(Number.parseInt(percent[1] as string, 16)), end: at + 3 };
    }
    default:
      return { look: lookOf(codePoint), end };
  }
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function lookAt(codePoint: number): string | null {
  return codePoint <= 0x10ffff ? lookOf(codePoint) : null;
}
