/**
 * Media types of files: detected from the first bytes, and checked for files in messages.
 */

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

/** Types that providers decode. A file with other content makes every later request of its session fail. */
const VERIFIED: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'application/pdf',
]);

/** Number of leading bytes that decide whether a file is binary. */
export const SNIFF_BYTES = 8_192;

/**
 * The media type of a binary file, or null for text. The type of a known signature; otherwise
 * `application/octet-stream` if the first {@link SNIFF_BYTES} contain a NUL byte, as in git.
 */
export function binaryMediaType(beginning: Uint8Array): string | null {
  return signedMediaType(beginning) ?? (beginning.subarray(0, SNIFF_BYTES).includes(0) ? OCTETS : null);
}

const OCTETS = 'application/octet-stream';

/** The media type by the signature in a file's first bytes, or null. */
function signedMediaType(bytes: Uint8Array): string | null {
  const signed = ({ at, bytes: signature }: (typeof SIGNATURES)[number]) => {
    for (let i = 0; i < signature.length; i++) if (bytes[at + i] !== signature.charCodeAt(i)) return false;
    return true;
  };
  return SIGNATURES.find(signed)?.mediaType ?? null;
}

// RFC 6838 section 4.2: restricted names, here at most 64 characters each.
const MEDIA_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}$/;

/**
 * The media type of a file in a message, without parameters; or the reason why the file is not accepted. A file
 * declared as PNG, JPEG, GIF, WebP or PDF gets the type of its content. Its content must be one of these types.
 * @param said the declared media type.
 * @param beginning at least the first 12 bytes.
 */
export function shownMediaType(
  said: string,
  beginning: Uint8Array,
): { readonly mediaType: string } | { readonly refused: string } {
  const mediaType = (said.split(';', 1)[0] as string).trim().toLowerCase().replace('image/jpg', 'image/jpeg');
  if (!MEDIA_TYPE.test(mediaType)) return { refused: 'its media type is invalid' };
  const signed = signedMediaType(beginning);
  if (VERIFIED.has(mediaType) && signed !== mediaType) {
    return signed !== null && VERIFIED.has(signed)
      ? { mediaType: signed }
      : { refused: `its content is not ${mediaType}` };
  }
  return { mediaType };
}

/** The text of UTF-8 bytes without a byte order mark; null if the bytes are not UTF-8. */
export function utf8Of(bytes: Uint8Array): string | null {
  try {
    // TextDecoder removes the byte order mark.
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}
