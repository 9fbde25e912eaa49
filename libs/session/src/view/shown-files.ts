/** Tool results as the model sees them: stored files as bytes in messages, and notes on calls that a person edited. */
import type { Blobs } from '@coxswain/ports';
import {
  type BlobRef,
  BOUNDS,
  canonicalJson,
  cutText,
  type EventOf,
  type FilePart,
  labelText,
  type Message,
  type ToolMessage,
} from '@coxswain/protocol';

/** Base64 of the files that the newest request showed, by SHA-256. */
export type FileCache = Map<string, string>;

type StoredFile = FilePart & { readonly data: BlobRef };

/**
 * Puts the bytes of stored files into results, newest first, up to `BOUNDS.shownFilesMaxBytes`. A file beyond the
 * bound, or one that is missing or cannot be read now, stays a reference, which adapters show as a note. Only tool
 * results get their files: a reference in a client's message could name anyone's file.
 * @param cache the files of the last request. Afterwards it holds those of this request.
 */
export async function withStoredFiles(
  messages: readonly Message[],
  blobs: Blobs,
  cache: FileCache,
): Promise<readonly Message[]> {
  const shown = new Map<string, string>();
  let room: number = BOUNDS.shownFilesMaxBytes;
  const whole = [...messages];
  for (let at = whole.length - 1; at >= 0; at--) {
    const message = whole[at] as Message;
    if (message.role !== 'tool' || !message.content.some(isStored)) continue;
    const content: ToolMessage['content'] = [];
    for (const part of message.content) {
      const fits = isStored(part) && (shown.has(part.data.sha256) || part.data.bytes <= room);
      const data = fits ? (shown.get(part.data.sha256) ?? (await bytesOf(part.data, blobs, cache))) : null;
      if (data === null || !isStored(part)) {
        content.push(part);
        continue;
      }
      if (!shown.has(part.data.sha256)) room -= part.data.bytes;
      shown.set(part.data.sha256, data);
      content.push({ ...part, data });
    }
    whole[at] = { ...message, content };
  }
  cache.clear();
  for (const [sha256, data] of shown) cache.set(sha256, data);
  return whole;
}

/** Whether a part is a file in the object store. */
export function isStored(part: ToolMessage['content'][number]): part is StoredFile {
  return part.type === 'file' && typeof part.data !== 'string';
}

async function bytesOf({ sha256 }: BlobRef, blobs: Blobs, cache: FileCache): Promise<string | null> {
  const known = cache.get(sha256);
  if (known !== undefined) return known;
  try {
    const bytes = await blobs.get(sha256);
    return bytes === null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  } catch {
    // An unavailable object store must not end the run: the model gets a note instead of the file.
    return null;
  }
}

const EDITED_MAX_CHARS = 2_000;

/**
 * The note on a call whose arguments a person edited. The model reads it before the result. Without it, the model would
 * read the result as the result of its own arguments.
 */
export function editedNote({ args, actor }: EventOf<'approval_decided'>): string {
  const text = canonicalJson(args ?? {});
  const shown = text.length > EDITED_MAX_CHARS ? `${cutText(text, EDITED_MAX_CHARS)}…` : text;
  const who = actor ? `${labelText(actor.name)} (a person)` : 'A person';
  return `[${who} edited the arguments of this tool call before it ran. It ran with ${shown}]`;
}
