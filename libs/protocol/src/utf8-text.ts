/** Texts that people keep in files. */

/** The text of UTF-8 bytes, without the mark that some editors put in front of it; null where they are something else. */
export function utf8Of(bytes: Uint8Array): string | null {
  try {
    // Takes the byte order mark away by itself.
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}
