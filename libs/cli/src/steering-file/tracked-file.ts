/** One generation of a steering file: the part that has been sent, and the next line. */
import { createHash, randomUUID } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';

/** The stored facts about one generation. A later process continues from them. */
export interface Track {
  /**
   * Random, and new for each generation: the same text at the same position of another generation is another message.
   */
  readonly generation: string;
  /** The inode; null before the file was seen. */
  readonly ino: string | null;
  /** Number of bytes from the start that are done. */
  readonly consumed: number;
  /** SHA-256 of the last of these bytes. It detects a file that was rewritten in place. */
  readonly tail: string;
}

/** The next part of a file. `end` is the offset after it. */
export type NextLine =
  | { readonly kind: 'none' }
  | { readonly kind: 'line'; readonly bytes: Buffer; readonly end: number }
  /** A line without a newline so far. */
  | { readonly kind: 'partial'; readonly bytes: Buffer; readonly end: number }
  /** `end` is null while the line has no newline. */
  | { readonly kind: 'too_long'; readonly end: number | null; readonly atLeast: number };

const TAIL_MAX_BYTES = 4_096;
const CHUNK_BYTES = 64 * 1024;
const NEWLINE = 0x0a;
const NOTHING = sha256(Buffer.alloc(0));

/** The track of a file that has not been read. */
export function newTrack(ino: string | null): Track {
  return { generation: randomUUID(), ino, consumed: 0, tail: NOTHING };
}

/** Whether an open file is still the one of a track: the same inode, and the same bytes at the end of the sent part. */
export async function isTrackOf(track: Track, handle: FileHandle): Promise<boolean> {
  const { ino, size } = await handle.stat({ bigint: true });
  if (track.ino !== String(ino) || size < track.consumed) return false;
  return track.tail === (await tailHash(handle, track.consumed));
}

/** The track after all bytes up to an offset are done. */
export async function advance(track: Track, handle: FileHandle, consumed: number): Promise<Track> {
  const { ino } = await handle.stat({ bigint: true });
  return { ...track, ino: String(ino), consumed, tail: await tailHash(handle, consumed) };
}

/** Reads the part that starts at an offset. */
export async function nextLine(handle: FileHandle, from: number, maxBytes: number): Promise<NextLine> {
  const bytes = await readAt(handle, from, maxBytes + 1);
  if (bytes.length === 0) return { kind: 'none' };
  const newline = bytes.indexOf(NEWLINE);
  if (newline >= 0) return { kind: 'line', bytes: bytes.subarray(0, newline), end: from + newline + 1 };
  if (bytes.length <= maxBytes) return { kind: 'partial', bytes, end: from + bytes.length };
  let at = from + bytes.length;
  for (;;) {
    const chunk = await readAt(handle, at, CHUNK_BYTES);
    const end = chunk.indexOf(NEWLINE);
    if (end >= 0) return { kind: 'too_long', end: at + end + 1, atLeast: at + end - from };
    at += chunk.length;
    if (chunk.length < CHUNK_BYTES) return { kind: 'too_long', end: null, atLeast: at - from };
  }
}

/** Reads at most `length` bytes at an offset; fewer only at the end of the file. */
export async function readAt(handle: FileHandle, from: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(Math.min(length, Math.max(0, (await handle.stat()).size - from)));
  let filled = 0;
  while (filled < buffer.length) {
    const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled, from + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

async function tailHash(handle: FileHandle, consumed: number): Promise<string> {
  const from = Math.max(0, consumed - TAIL_MAX_BYTES);
  return sha256(await readAt(handle, from, consumed - from));
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
