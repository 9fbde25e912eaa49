/**
 * Well-formed Unicode. A JavaScript string may hold a lone surrogate: half of a UTF-16 pair, which UTF-8 cannot encode
 * and which strict model providers refuse. Texts of commands with one are rejected, texts of everything else are
 * repaired where they enter a session, and texts are cut between code points.
 */

/**
 * The value with each lone surrogate replaced by U+FFFD, in texts and in keys, at any depth. A well-formed value is
 * returned itself. Objects of classes are returned as they are.
 * @param value nested at most as deep as the protocol allows: it is walked recursively.
 */
export function toWellFormed<T>(value: T): T {
  return repaired(value) as T;
}

function repaired(value: unknown): unknown {
  if (typeof value === 'string') return value.isWellFormed() ? value : value.toWellFormed();
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const members = value.map(repaired);
    return members.every((member, index) => member === value[index]) ? value : members;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  let isSame = true;
  const entries = Object.entries(value).map(([key, member]): [string, unknown] => {
    const entry: [string, unknown] = [key.toWellFormed(), repaired(member)];
    if (entry[0] !== key || entry[1] !== member) isSame = false;
    return entry;
  });
  // From entries, as an assignment to a member named `__proto__` would be lost.
  return isSame ? value : Object.fromEntries(entries);
}

/** The beginning of a text, at most so many UTF-16 units, cut between code points. */
export function cutText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const end = Math.max(0, maxChars);
  return text.slice(0, splitsPair(text, end) ? end - 1 : end);
}

/** The end of a text, at most so many UTF-16 units, cut between code points. */
export function cutTextToEnd(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const start = text.length - Math.max(0, maxChars);
  return text.slice(splitsPair(text, start) ? start + 1 : start);
}

/** Created at first use: loading the segmentation rules takes 10 ms, and most processes cut no text. */
let segmenter: Intl.Segmenter | undefined;
// No cluster that people use is longer; what lies further behind the cut does not move it.
const CLUSTER_MAX_CHARS = 64;

/**
 * The beginning of a text for people, at most so many UTF-16 units, cut between grapheme clusters: a family emoji or a
 * letter with its accents is shown whole or not at all. One cluster that is longer than that is cut between code points.
 */
export function cutGraphemes(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const near = text.slice(0, Math.max(0, maxChars) + CLUSTER_MAX_CHARS);
  segmenter ??= new Intl.Segmenter();
  const end = segmenter.segment(near).containing(Math.max(0, maxChars))?.index ?? 0;
  return end > 0 ? text.slice(0, end) : cutText(text, maxChars);
}

/** Shorter texts are cut at their end: three parts would leave nothing of them. */
const MIDDLE_CUT_MIN_CHARS = 48;

/**
 * Shortens a text for people to a number of UTF-16 units, and states the length of the omitted middle. The beginning
 * gets three fifths. The end stays visible, so that a long beginning cannot hide the end of a command.
 */
export function cutMiddle(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  if (maxChars < MIDDLE_CUT_MIN_CHARS) return `${cutGraphemes(text, maxChars - 1)}…`;
  const head = cutGraphemes(text, Math.floor(maxChars * 0.6) - 8);
  const tail = cutTextToEnd(text, Math.floor(maxChars * 0.4) - 8);
  return `${head} [… ${text.length - head.length - tail.length} more] ${tail}`;
}

/**
 * Whether a text holds a visible character. White space, control characters, zero-width characters, fillers and the
 * blank Braille pattern show nothing.
 */
export function hasVisibleText(text: string): boolean {
  return /[^\s\p{Cc}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]/u.test(text);
}

/** Joins the pieces of a streamed text: a surrogate pair that two pieces share is given out whole, with the second. */
export class PieceJoiner {
  #held = '';

  /** The next piece as it can be shown: well-formed, and empty while half of a pair is all there is. */
  take(piece: string): string {
    const text = this.#held + piece;
    const isHalf = isHighSurrogate(text, text.length - 1);
    this.#held = isHalf ? text.slice(-1) : '';
    return (isHalf ? text.slice(0, -1) : text).toWellFormed();
  }

  /** What is left at the end of the stream: U+FFFD for half of a pair, else nothing. */
  end(): string {
    const left = this.#held.toWellFormed();
    this.#held = '';
    return left;
  }
}

function splitsPair(text: string, at: number): boolean {
  return isHighSurrogate(text, at - 1) && isLowSurrogate(text, at);
}

function isHighSurrogate(text: string, index: number): boolean {
  const unit = text.charCodeAt(index);
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(text: string, index: number): boolean {
  const unit = text.charCodeAt(index);
  return unit >= 0xdc00 && unit <= 0xdfff;
}
