/** What a model is shown of results: stored files, put back into messages, and notes on calls that a person has edited. */
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

/** Files as base64, by their hashes: those that the newest request showed. */
export type FileCache = Map<string, string>;

type StoredFile = FilePart & { readonly data: BlobRef };

/**
 * The messages with the bytes of their results' files, newest first as far as the bound goes. What lies beyond, or is not
 * to be had now, stays a reference, which adapters show as a note. Only results have files put back: in what a client
 * sent, a reference could be anybody's.
 */
export async function withFiles(
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

/** Whether a part is a file that lies in the object store. */
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
    // The model goes on without it, and is told: an object store that is away must not end runs.
    return null;
  }
}

const EDITED_MAX_CHARS = 2_000;

/**
 * The note on a call whose arguments a person has edited. The model reads it before the result. Without it, a model would
 * take the result for that of its own arguments.
 */
export function editedNote({ args, actor }: EventOf<'approval_decided'>): string {
  const text = canonicalJson(args ?? {});
  const shown = text.length > EDITED_MAX_CHARS ? `${cutText(text, EDITED_MAX_CHARS)}…` : text;
  const who = actor ? `${labelText(actor.name)} (a person)` : 'A person';
  return `[${who} edited the arguments of this tool call before it ran. It ran with ${shown}]`;
}
