/**
 * Cutting text to a bound. Lengths are those of the text as JSON in UTF-8, because that is how a result lies in its
 * record: a newline takes two bytes there, a control character six.
 */

/** Bytes of a text inside a JSON string, quotes not counted. */
export function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2;
}

/** The longest beginning of a text that takes at most `maxBytes`; whole characters only. */
export function headWithin(text: string, maxBytes: number): string {
  // No character takes less than one byte, so what lies beyond cannot fit and need not be looked at.
  const candidate = text.slice(0, Math.max(0, maxBytes));
  if (candidate.length === text.length && jsonBytes(text) <= maxBytes) return text;
  let used = 0;
  let end = 0;
  for (const character of candidate) {
    used += jsonBytes(character);
    if (used > maxBytes) break;
    end += character.length;
  }
  // The slice may have halved a pair; half a character is none.
  if (end > 0 && isHighSurrogate(candidate, end - 1)) end -= 1;
  return candidate.slice(0, end);
}

/** The longest end of a text that takes at most `maxBytes`; whole characters only. */
export function tailWithin(text: string, maxBytes: number): string {
  if (maxBytes <= 0) return '';
  let start = Math.max(0, text.length - maxBytes);
  if (start > 0 && isHighSurrogate(text, start - 1)) start += 1;
  const candidate = text.slice(start);
  let excess = jsonBytes(candidate) - maxBytes;
  let from = 0;
  for (const character of candidate) {
    if (excess <= 0) break;
    excess -= jsonBytes(character);
    from += character.length;
  }
  return candidate.slice(from);
}

/** A text within a bound, beginning and end kept, with a line in between that says how much is missing. */
export function middleCut(head: string, tail: string, droppedBytes: number, maxBytes: number): string {
  if (droppedBytes === 0 && jsonBytes(head) + jsonBytes(tail) <= maxBytes) return head + tail;
  const room = Math.max(0, maxBytes - CUT_LINE_MAX_BYTES);
  const kept = headWithin(head, Math.floor(room / 4));
  // Behind a gap only the tail is whole; without one, what the head did not keep is the tail's beginning.
  const end = tailWithin(droppedBytes > 0 ? tail : head.slice(kept.length) + tail, room - jsonBytes(kept));
  const lost = droppedBytes + Buffer.byteLength(head + tail) - Buffer.byteLength(kept) - Buffer.byteLength(end);
  return `${kept}\n[... ${lost} bytes of output are omitted here ...]\n${end}`;
}

const CUT_LINE_MAX_BYTES = 128;

function isHighSurrogate(text: string, index: number): boolean {
  const unit = text.charCodeAt(index);
  return unit >= 0xd800 && unit <= 0xdbff;
}
