/** What kind of file some bytes are, told by their beginning. */

const SIGNATURES: readonly { readonly at: number; readonly bytes: string; readonly mediaType: string }[] = [
  { at: 0, bytes: '\x89PNG\r\n\x1a\n', mediaType: 'image/png' },
  { at: 0, bytes: '\xff\xd8\xff', mediaType: 'image/jpeg' },
  { at: 0, bytes: 'GIF87a', mediaType: 'image/gif' },
  { at: 0, bytes: 'GIF89a', mediaType: 'image/gif' },
  { at: 8, bytes: 'WEBP', mediaType: 'image/webp' },
  { at: 8, bytes: 'WAVE', mediaType: 'audio/wav' },
  { at: 0, bytes: '%PDF-', mediaType: 'application/pdf' },
  { at: 0, bytes: 'ID3', mediaType: 'audio/mpeg' },
  { at: 0, bytes: 'OggS', mediaType: 'audio/ogg' },
  { at: 0, bytes: 'PK\x03\x04', mediaType: 'application/zip' },
  { at: 0, bytes: '\x1f\x8b', mediaType: 'application/gzip' },
];

/** How many bytes from its beginning tell what a file is. */
export const SNIFF_BYTES = 8_192;

/** The media type of a file that is not text, or null for text. A NUL byte makes a file binary, as it does for git. */
export function binaryMediaType(beginning: Uint8Array): string | null {
  const bytes = Buffer.from(beginning.buffer, beginning.byteOffset, Math.min(beginning.byteLength, SNIFF_BYTES));
  const found = SIGNATURES.find(({ at, bytes: signature }) =>
    bytes.subarray(at, at + signature.length).equals(Buffer.from(signature, 'latin1')),
  );
  if (found !== undefined) return found.mediaType;
  return bytes.includes(0) ? 'application/octet-stream' : null;
}
