/**
 * The whole texts of results that were truncated for their records. The model reads more of a result by the reference
 * in the truncated text. A reference that was not in a result of this session is `unknown`.
 */
import type { Blobs, WholeResults } from '@coxswain/ports';
import { BOUNDS } from '@coxswain/protocol';

/** The references of one session, and how much one read may return. */
export interface ResultIndex {
  /** Whether a result that the model was shown has this reference. */
  has(sha256: string): boolean;
  /** `max_output` of the tool that reads on, if it has one. */
  readonly maxOutput: number | undefined;
}

/** Room for the sentences around a piece, in bytes. */
const FRAME_MAX_BYTES = 512;

/**
 * Reads pieces of whole results from the object store. With the sentences around it, a piece fits into the `max_output`
 * of the tool that reads on.
 * @param index called at each read.
 */
export function wholeResults(blobs: Blobs, index: () => ResultIndex): WholeResults {
  return {
    async read(ref, offset, limit) {
      const known = index();
      const maxOutput = known.maxOutput ?? BOUNDS.toolResultInlineMaxBytes;
      if (!known.has(ref)) return 'unknown';
      const bytes = await blobs.get(ref);
      if (bytes === null) return 'gone';
      const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const from = characterStart(whole, Math.min(offset, whole.length));
      const text = cutUtf8(whole.subarray(from), Math.min(limit, maxOutput - FRAME_MAX_BYTES));
      const end = from + Buffer.byteLength(text, 'utf8');
      return { text, offset: from, next: end < whole.length ? end : null, bytes: whole.length };
    },
  };
}

/** The longest beginning of a UTF-8 text that has at most `maxBytes` bytes and ends with a whole character. */
export function cutUtf8(bytes: Buffer, maxBytes: number): string {
  return bytes.toString('utf8', 0, bytes.length <= maxBytes ? bytes.length : characterStart(bytes, maxBytes));
}

// Continuation bytes are 10xxxxxx: step back to the beginning of a character.
function characterStart(bytes: Buffer, at: number): number {
  let start = at;
  while (start > 0 && start < bytes.length && ((bytes[start] as number) & 0xc0) === 0x80) start--;
  return start;
}
