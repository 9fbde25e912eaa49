/** One incarnation of a steering file: what of it has been sent, and the line that comes next. */
import { createHash, randomUUID } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';

/** What is known of one incarnation. It is kept on the disk, so that a later process goes on where this one stopped. */
export interface Track {
  /** Random, new for every incarnation: the same text in the same place of another one is another message. */
  readonly generation: string;
  /** The inode, or null before the file was seen. */
  readonly ino: string | null;
  /** So many bytes from the beginning are done with. */
  readonly consumed: number;
  /** SHA-256 of the last of them: a file that was written anew in its place shows here. */
  readonly tail: string;
}

/** The next piece of a file. `end` is the offset behind it. */
export type NextLine =
  | { readonly kind: 'none' }
  | { readonly kind: 'line'; readonly bytes: Buffer; readonly end: number }
  /** Its newline is not there yet. */
  | { readonly kind: 'partial'; readonly bytes: Buffer; readonly end: number }
  /** `end` is null while its newline is not there yet. */
  | { readonly kind: 'too_long'; readonly end: number | null; readonly atLeast: number };

const TAIL_MAX_BYTES = 4_096;
const CHUNK_BYTES = 64 * 1024;
const NEWLINE = 0x0a;
const NOTHING = sha256(Buffer.alloc(0));

/** A track of a file that has not been read. */
export function newTrack(ino: string | null): Track {
  return { generation: randomUUID(), ino, consumed: 0, tail: NOTHING };
}

/** Whether an open file is still the one that a track speaks of: the same inode, and what was sent stands in it. */
export async function isTrackOf(track: Track, handle: FileHandle): Promise<boolean> {
  const { ino, size } = await handle.stat({ bigint: true });
  if (track.ino !== String(ino) || size < track.consumed) return false;
  return track.tail === (await tailHash(handle, track.consumed));
}

/** The track after everything up to an offset was done with. */
export async function advance(track: Track, handle: FileHandle, consumed: number): Promise<Track> {
  const { ino } = await handle.stat({ bigint: true });
  return { ...track, ino: String(ino), consumed, tail: await tailHash(handle, consumed) };
}

/** Reads the piece that begins at an offset. */
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

/** Reads up to so many bytes at an offset; fewer only at the end of the file. */
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
