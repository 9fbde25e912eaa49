/** The share of a record that one value may take, because the record contains it several times. */
import { BOUNDS } from '@coxswain/protocol';

/**
 * Of a longer text, only this many characters count, because it can become a blob (`sealRecord`, append-record.ts). Its
 * reference has about 100 bytes. The rest is room for its JSON pointer in the record.
 */
const TEXT_INLINE_MAX_CHARS = 256;

/** Bytes of a value, as JSON in UTF-8, that stay in its record after its longer texts became blobs (`sealRecord`). */
export function inlineBytes(value: unknown): number {
  const text = JSON.stringify(value, (_key, member: unknown) =>
    // A text that is not valid UTF-16 stays in the record.
    typeof member === 'string' && member.length > TEXT_INLINE_MAX_CHARS && member.isWellFormed()
      ? member.slice(0, TEXT_INLINE_MAX_CHARS)
      : member,
  );
  return Buffer.byteLength(text ?? '', 'utf8');
}

/** Maximum of {@link inlineBytes} of a value that a record contains so many times, with room for the rest of the record. */
export function inlineMaxBytes(copies: number): number {
  return Math.floor(BOUNDS.recordMaxBytes / (copies + 1));
}
