/**
 * Large fields as the object store holds them (NATS ADR-20): one message under the object's name that says what it is, and
 * its bytes in chunks. They are read message by message. The store's own readers make a consumer for each object, which
 * stays for minutes after it was read; a server bounds how many there may be, and then nobody can read any more.
 */
import * as z from 'zod';
import { STREAMS } from './subjects.ts';

/** The stream behind the object store. */
export const BLOBS_STREAM = `OBJ_${STREAMS.blobs}`;

/** One message of that stream. */
export interface BlobMessage {
  readonly seq: number;
  readonly data: Uint8Array;
}

/** The first message on a subject at or after a position, or null. */
export type NextBlobMessage = (subject: string, seq: number) => Promise<BlobMessage | null>;

/** Where the object store says what its objects are. */
export const BLOB_SUBJECTS = {
  /** What the object of a name is. */
  about: (name: string) => `$O.${STREAMS.blobs}.M.${base64Url(name)}`,
  /** What every object is. */
  abouts: `$O.${STREAMS.blobs}.M.*`,
  /** The bytes of one. */
  chunks: (nuid: string) => `$O.${STREAMS.blobs}.C.${nuid}`,
} as const;

const About = z.object({
  name: z.string(),
  nuid: z.string().regex(/^[A-Za-z0-9]{1,64}$/),
  size: z.number().int().nonnegative(),
  deleted: z.boolean().optional(),
});

/**
 * Reads the object of a name; null if it does not exist.
 * @throws Error for invalid or incomplete data: the object may be in the process of being written.
 */
export async function readStoredBlob(name: string, next: NextBlobMessage): Promise<Uint8Array | null> {
  const stored = await next(BLOB_SUBJECTS.about(name), 1);
  if (!stored) return null;
  const { nuid, size, deleted } = readAbout(stored.data);
  if (deleted) return null;
  const whole = new Uint8Array(size);
  let seq = 1;
  for (let held = 0; held < size; ) {
    const chunk = await next(BLOB_SUBJECTS.chunks(nuid), seq);
    if (!chunk || held + chunk.data.length > size) throw new Error(`the object ${name} is not whole`);
    whole.set(chunk.data, held);
    held += chunk.data.length;
    seq = chunk.seq + 1;
  }
  return whole;
}

/** Reads what an object says of itself. @throws Error where it is none. */
export function readAbout(data: Uint8Array): z.infer<typeof About> {
  return About.parse(JSON.parse(new TextDecoder().decode(data)));
}

/** The metadata of a deleted object: it keeps the name without the bytes. */
export function deletedAbout(data: Uint8Array): Uint8Array {
  const about = JSON.parse(new TextDecoder().decode(data)) as object;
  return new TextEncoder().encode(JSON.stringify({ ...about, size: 0, chunks: 0, digest: '', deleted: true }));
}

function base64Url(name: string): string {
  return btoa(name).replaceAll('+', '-').replaceAll('/', '_');
}
