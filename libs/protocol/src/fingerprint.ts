/** Fingerprints: short names for long texts, to know them again. Not for anything that someone may want to forge. */

/** 64 bits of a text as 16 hexadecimal digits: two 32-bit hashes of its UTF-16 code units, in the manner of FNV-1a. */
export function fingerprint(text: string): string {
  let one = 0x811c9dc5;
  let other = 0x2f0b4c47;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    one = Math.imul(one ^ unit, 0x01000193);
    other = Math.imul(other ^ unit, 0x85ebca6b) ^ (other >>> 13);
  }
  return hex(one) + hex(other);
}

function hex(bits: number): string {
  return (bits >>> 0).toString(16).padStart(8, '0');
}
