/**
 * Cuts text to a limit. Lengths are bytes of the text as JSON in UTF-8, which is its form in a record. There a newline
 * takes two bytes, and a control character six.
 */

/** The size of a text in a JSON string in bytes, without the quotes. */
export function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2;
}

/** The longest prefix of a text that takes at most `maxBytes`, in whole characters. */
export function headWithin(text: string, maxBytes: number): string {
  // Each character takes at least one byte, so the rest cannot fit.
  const candidate = text.slice(0, Math.max(0, maxBytes));
  if (candidate.length === text.length && jsonBytes(text) <= maxBytes) return text;
  let used = 0;
  let end = 0;
  for (const character of candidate) {
    used += jsonBytes(character);
    if (used > maxBytes) break;
    end += character.length;
  }
  // The slice may have split a surrogate pair. Half of a pair is not a character.
  if (end > 0 && isHighSurrogate(candidate, end - 1)) end -= 1;
  return candidate.slice(0, end);
}

/** The longest suffix of a text that takes at most `maxBytes`, in whole characters. */
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

/** A text within a limit: its beginning and its end, and a line in between with the number of omitted bytes. */
export function middleCut(head: string, tail: string, droppedBytes: number, maxBytes: number): string {
  if (droppedBytes === 0 && jsonBytes(head) + jsonBytes(tail) <= maxBytes) return head + tail;
  const room = Math.max(0, maxBytes - CUT_LINE_MAX_BYTES);
  const kept = headWithin(head, Math.floor(room / 4));
  // After a gap only the tail is complete. Without a gap, the rest of the head is the start of the tail.
  const end = tailWithin(droppedBytes > 0 ? tail : head.slice(kept.length) + tail, room - jsonBytes(kept));
  const lost = droppedBytes + Buffer.byteLength(head + tail) - Buffer.byteLength(kept) - Buffer.byteLength(end);
  return `${kept}\n[... ${lost} bytes of output are omitted here ...]\n${end}`;
}

const CUT_LINE_MAX_BYTES = 128;

function isHighSurrogate(text: string, index: number): boolean {
  const unit = text.charCodeAt(index);
  return unit >= 0xd800 && unit <= 0xdbff;
}
