import { gunzipSync } from 'node:zlib';

const blockSize = 512;

/**
 * Extracts one file from a gzip-compressed tar archive in memory. Supports the ustar header with its name prefix
 * (https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html), which is all that the releases use.
 *
 * @param wanted called with the path of each regular file until it returns true.
 * @param maxBytes maximum size of the unpacked archive.
 * @returns undefined if the archive has no such file.
 * @throws Error of zlib if the archive is damaged or too large; RangeError if an entry is truncated.
 */
export function fileFromTarGz(
  archive: Buffer,
  wanted: (path: string) => boolean,
  maxBytes: number,
): Buffer | undefined {
  const tar = gunzipSync(archive, { maxOutputLength: maxBytes });
  let offset = 0;
  while (offset + blockSize <= tar.length) {
    const header = tar.subarray(offset, offset + blockSize);
    const name = text(header, 0, 100);
    // Two empty blocks end an archive. An empty name is the first of them.
    if (name === '') return undefined;
    const size = Number.parseInt(text(header, 124, 12).trim() || '0', 8);
    const start = offset + blockSize;
    if (!Number.isSafeInteger(size) || start + size > tar.length)
      throw new RangeError(`tar entry ${name} is cut short`);
    const prefix = text(header, 345, 155);
    const isFile = header[156] === 0x30 || header[156] === 0;
    if (isFile && wanted(prefix === '' ? name : `${prefix}/${name}`)) return tar.subarray(start, start + size);
    offset = start + Math.ceil(size / blockSize) * blockSize;
  }
  return undefined;
}

function text(header: Buffer, start: number, length: number): string {
  const field = header.subarray(start, start + length);
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end === -1 ? length : end);
}
