import { inflateRawSync } from 'node:zlib';

const endOfDirectory = 0x06054b50;
const directoryEntry = 0x02014b50;
const stored = 0;
const deflated = 8;

/**
 * Extracts one file from a zip archive in memory. Reads the central directory
 * (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3), and stored and deflated entries. It does not
 * support zip64: the Windows releases are small.
 *
 * @param wanted called with the path of each entry until it returns true.
 * @param maxBytes maximum size of an unpacked deflated file.
 * @returns undefined if the archive has no such file.
 * @throws RangeError if the archive has no valid directory, an entry is truncated, or its compression method is
 *   unknown; Error of zlib if an entry is damaged or too large.
 */
export function fileFromZip(archive: Buffer, wanted: (path: string) => boolean, maxBytes: number): Buffer | undefined {
  const end = archive.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
  if (end === -1 || archive.readUInt32LE(end) !== endOfDirectory) throw new RangeError('no zip directory found');
  const entries = archive.readUInt16LE(end + 10);
  let at = archive.readUInt32LE(end + 16);
  for (let index = 0; index < entries; index += 1) {
    if (archive.readUInt32LE(at) !== directoryEntry) throw new RangeError('the zip directory is damaged');
    const nameLength = archive.readUInt16LE(at + 28);
    const path = archive.toString('utf8', at + 46, at + 46 + nameLength);
    if (wanted(path)) return unpack(archive, at, path, maxBytes);
    at += 46 + nameLength + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  return undefined;
}

function unpack(archive: Buffer, entry: number, path: string, maxBytes: number): Buffer {
  const method = archive.readUInt16LE(entry + 10);
  const packedSize = archive.readUInt32LE(entry + 20);
  const local = archive.readUInt32LE(entry + 42);
  // The local header has its own lengths: its extra field may differ from the directory's.
  const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
  const packed = archive.subarray(start, start + packedSize);
  if (packed.length !== packedSize) throw new RangeError(`zip entry ${path} is cut short`);
  if (method === stored) return packed;
  if (method === deflated) return inflateRawSync(packed, { maxOutputLength: maxBytes });
  throw new RangeError(`zip entry ${path} is packed by method ${method}, which is not known here`);
}
