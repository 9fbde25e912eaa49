/**
 * Tombstones: the rest of a deleted session. A tombstone is the last message of the session's journal, appended with
 * a fence like every record. Later appends are rejected, and readers find that the session is deleted.
 */
import * as z from 'zod';
import { StoredActor } from '../commands/actor.ts';
import { canonicalJson } from '../wire/canonical-json.ts';

/** The version that this release writes. */
export const TOMBSTONE_VERSION = 1;

/** The content of a tombstone. */
export const Tombstone = z.strictObject({
  tombstone: z.literal(TOMBSTONE_VERSION),
  session_id: z.string(),
  /** ISO 8601, by the store's time. */
  deleted_at: z.iso.datetime(),
  /** The actor of the deletion, if known. */
  deleted_by: StoredActor.optional(),
  reason: z.string().optional(),
  /** Number of records of the session, and the SHA-256 of the newest one. */
  records: z.number().int().nonnegative(),
  last_hash: z.string().regex(/^[0-9a-f]{64}$/),
});
export type Tombstone = z.infer<typeof Tombstone>;

/** The first bytes of every tombstone, and of no record: the members have a fixed order. */
const BEGINNING = '{"deleted_at":';

/** The stored bytes of a tombstone. */
export function tombstoneBytes(tombstone: Tombstone): Uint8Array {
  return new TextEncoder().encode(canonicalJson(tombstone));
}

/** Reads a tombstone; null for other bytes. Cheap for the bytes of a record. */
export function tombstoneIn(bytes: Uint8Array): Tombstone | null {
  for (let i = 0; i < BEGINNING.length; i++) if (bytes[i] !== BEGINNING.charCodeAt(i)) return null;
  try {
    const read = Tombstone.safeParse(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)));
    return read.success ? read.data : null;
  } catch {
    // Not a valid tombstone: the decoder of records reports the problem.
    return null;
  }
}

/** A sentence: when a session was deleted, by which actor and for which reason. */
export function deletionSentence({ session_id, deleted_at, deleted_by, reason }: Tombstone): string {
  const by = deleted_by ? ` by ${deleted_by.name}` : '';
  return `the session ${session_id} was deleted at ${deleted_at}${by}${reason === undefined ? '' : ` (${inOneLine(reason)})`}`;
}

/** Replaces line breaks: the text is quoted within a sentence. */
function inOneLine(text: string): string {
  return text.trim().replace(/\s+/g, ' ');
}
