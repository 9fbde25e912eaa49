/**
 * Large fields in the object store (NATS ADR-20): one message with metadata under the object's name, and the bytes in
 * chunks. This module reads the messages one by one. The reader of the NATS library creates a consumer for each object,
 * which exists for minutes after the read. A server bounds the number of consumers, so many reads would block all
 * readers.
 */
import * as z from 'zod';
import { STREAMS } from './subjects.ts';

/** The stream behind the object store. */
export const BLOBS_STREAM = `OBJ_${STREAMS.blobs}`;

/** One message of {@link BLOBS_STREAM}. */
export interface BlobMessage {
  readonly seq: number;
  readonly data: Uint8Array;
}

/** The first message on a subject at or after a position, or null. */
export type NextBlobMessage = (subject: string, seq: number) => Promise<BlobMessage | null>;

/** Subjects of the object store. */
export const BLOB_SUBJECTS = {
  /** The metadata of the object with this name. */
  about: (name: string) => `$O.${STREAMS.blobs}.M.${base64Url(name)}`,
  /** The metadata of every object. */
  abouts: `$O.${STREAMS.blobs}.M.*`,
  /** The chunks of one object, by the `nuid` in its metadata. */
  chunks: (nuid: string) => `$O.${STREAMS.blobs}.C.${nuid}`,
} as const;

const About = z.object({
  name: z.string(),
  nuid: z.string().regex(/^[A-Za-z0-9]{1,64}$/),
  size: z.number().int().nonnegative(),
  deleted: z.boolean().optional(),
});

/**
 * Reads an object by its name; null if it does not exist or is deleted.
 * @throws Error for invalid or incomplete data: another process may be writing the object. Errors of `next`.
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

/** Reads the metadata of an object. @throws Error if it is invalid. */
export function readAbout(data: Uint8Array): z.infer<typeof About> {
  return About.parse(JSON.parse(new TextDecoder().decode(data)));
}

/**
 * The metadata of an object after its deletion: the name stays, the size becomes 0.
 * @param data the metadata before the deletion.
 */
export function deletedAbout(data: Uint8Array): Uint8Array {
  const about = JSON.parse(new TextDecoder().decode(data)) as object;
  return new TextEncoder().encode(JSON.stringify({ ...about, size: 0, chunks: 0, digest: '', deleted: true }));
}

function base64Url(name: string): string {
  return btoa(name).replaceAll('+', '-').replaceAll('/', '_');
}
