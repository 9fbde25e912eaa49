/**
 * Well-formed Unicode. A JavaScript string may contain a lone surrogate: half of a UTF-16 pair, which UTF-8 cannot
 * encode and strict model providers refuse. Commands with lone surrogates are rejected. All other texts are repaired
 * where they enter a session, except in copied records. Texts are cut between code points.
 */

/**
 * Replaces each lone surrogate by U+FFFD, in texts and keys of nested objects and lists. Returns a well-formed value
 * itself, and class instances unchanged.
 * @param value nested at most `BOUNDS.jsonDepthMax` deep: the function is recursive.
 */
export function toWellFormed<T>(value: T): T {
  // Nearly all values are well-formed: they are checked without a copy.
  return (isWellFormed(value) ? value : repaired(value)) as T;
}

function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (Array.isArray(value)) return value.every(isWellFormed);
  if (!isPlainObject(value)) return true;
  for (const key in value) if (!key.isWellFormed() || !isWellFormed(value[key])) return false;
  return true;
}

function repaired(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(repaired);
  if (!isPlainObject(value)) return value;
  // Not by assignment, which would lose a member named `__proto__`.
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key.toWellFormed(), repaired(member)]));
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** The beginning of a text, at most `maxChars` UTF-16 units, cut between code points. */
export function cutText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const end = Math.max(0, maxChars);
  return text.slice(0, splitsPair(text, end) ? end - 1 : end);
}

/** The end of a text, at most `maxChars` UTF-16 units, cut between code points. */
export function cutTextToEnd(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const start = text.length - Math.max(0, maxChars);
  return text.slice(splitsPair(text, start) ? start + 1 : start);
}

/** Created at first use: loading the segmentation rules takes 10 ms, and most processes do not need them. */
let segmenter: Intl.Segmenter | undefined;
// No common cluster is longer. Text further behind the cut cannot move it.
const CLUSTER_MAX_CHARS = 64;

/**
 * The beginning of a text for people, at most `maxChars` UTF-16 units, cut between grapheme clusters: an emoji of
 * several code points, or a letter with accents, is shown whole or omitted. If the first cluster is longer than
 * `maxChars`, it is cut between code points.
 */
export function cutGraphemes(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const near = text.slice(0, Math.max(0, maxChars) + CLUSTER_MAX_CHARS);
  segmenter ??= new Intl.Segmenter();
  const end = segmenter.segment(near).containing(Math.max(0, maxChars))?.index ?? 0;
  return end > 0 ? text.slice(0, end) : cutText(text, maxChars);
}

/** Below this maximum a text is cut at its end: three parts would be too short to read. */
const MIDDLE_CUT_MIN_CHARS = 48;

/**
 * Shortens a text for people to a number of UTF-16 units, and states the length of the omitted middle. The beginning
 * gets three fifths. The end stays visible, so that a long beginning cannot hide the end of a command. If
 * `maxChars` is below {@link MIDDLE_CUT_MIN_CHARS}, only the beginning and an ellipsis remain.
 */
export function cutMiddle(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  if (maxChars < MIDDLE_CUT_MIN_CHARS) return `${cutGraphemes(text, maxChars - 1)}…`;
  const markChars = Math.max(16, ' […  more] '.length + String(text.length).length);
  const head = cutGraphemes(text, Math.floor(maxChars * 0.6) - Math.ceil(markChars / 2));
  const tail = cutTextToEnd(text, Math.floor(maxChars * 0.4) - Math.floor(markChars / 2));
  return `${head} [… ${text.length - head.length - tail.length} more] ${tail}`;
}

/**
 * Whether a text holds a visible character. White space, control characters, zero-width characters, fillers and the
 * blank Braille pattern show nothing.
 */
export function hasVisibleText(text: string): boolean {
  return /[^\s\p{Cc}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]/u.test(text);
}

/**
 * Makes the pieces of a streamed text well-formed. A surrogate pair that spans two pieces is returned with the second
 * piece.
 */
export class PieceJoiner {
  #held = '';

  /**
   * The next piece, well-formed. Half of a pair at its end is kept for the next call. Empty if nothing else is left.
   */
  take(piece: string): string {
    const text = this.#held + piece;
    const isHalf = isHighSurrogate(text, text.length - 1);
    this.#held = isHalf ? text.slice(-1) : '';
    return (isHalf ? text.slice(0, -1) : text).toWellFormed();
  }

  /** The rest at the end of the stream: U+FFFD for half of a pair, otherwise empty. */
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
