import { inflateRawSync } from 'node:zlib';

const endOfDirectory = 0x06054b50;
const directoryEntry = 0x02014b50;
const stored = 0;
const deflated = 8;

/**
 * One file out of a zip archive held in memory, or `undefined` when it is not in there. `wanted` is asked with each
 * entry's path. Reads the central directory (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3), plain
 * and deflated entries, no zip64: the Windows releases are small.
 *
 * @param maxBytes bound for the unpacked file.
 * @throws RangeError when the archive has no directory or points outside itself; Error of zlib when it is damaged.
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
  // The local header repeats the name, and its extra field may have another length than the directory's.
  const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
  const packed = archive.subarray(start, start + packedSize);
  if (packed.length !== packedSize) throw new RangeError(`zip entry ${path} is cut short`);
  if (method === stored) return packed;
  if (method === deflated) return inflateRawSync(packed, { maxOutputLength: maxBytes });
  throw new RangeError(`zip entry ${path} is packed by method ${method}, which is not known here`);
}
