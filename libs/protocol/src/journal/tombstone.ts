/**
 * Tombstones: what stays of a deleted session. One is the last message on the session's journal, written under the same
 * fence as every record: whoever writes behind it is refused, and whoever reads the journal reads that it is deleted.
 */
import * as z from 'zod';
import { StoredActor } from '../commands/actor.ts';
import { canonicalJson } from '../wire/canonical-json.ts';

/** The shape that this release writes. */
export const TOMBSTONE_VERSION = 1;

/** What stays of a deleted session. */
export const Tombstone = z.strictObject({
  tombstone: z.literal(TOMBSTONE_VERSION),
  session_id: z.string(),
  /** ISO 8601, from the clock of the process that deleted it. */
  deleted_at: z.iso.datetime(),
  /** Who, as far as it was said. */
  deleted_by: StoredActor.optional(),
  reason: z.string().optional(),
  /** Records that the session had, and the SHA-256 of the newest of them. */
  records: z.number().int().nonnegative(),
  last_hash: z.string().regex(/^[0-9a-f]{64}$/),
});
/** See {@link Tombstone}. */
export type Tombstone = z.infer<typeof Tombstone>;

/** How a tombstone's bytes begin, and no record's: its members stand in their order. */
const BEGINNING = '{"deleted_at":';

/** A tombstone as it is stored. */
export function tombstoneBytes(tombstone: Tombstone): Uint8Array {
  return new TextEncoder().encode(canonicalJson(tombstone));
}

/** Reads a tombstone; null where the bytes are none. Cheap for a record's. */
export function tombstoneIn(bytes: Uint8Array): Tombstone | null {
  for (let i = 0; i < BEGINNING.length; i++) if (bytes[i] !== BEGINNING.charCodeAt(i)) return null;
  try {
    const read = Tombstone.safeParse(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)));
    return read.success ? read.data : null;
  } catch {
    // It begins like one and is none: whoever decodes it as a record says what is wrong.
    return null;
  }
}

/** When a session was deleted, by whom and why, as a sentence. */
export function deletionSentence({ session_id, deleted_at, deleted_by, reason }: Tombstone): string {
  const by = deleted_by ? ` by ${deleted_by.name}` : '';
  return `the session ${session_id} was deleted at ${deleted_at}${by}${reason === undefined ? '' : ` (${inOneLine(reason)})`}`;
}

/** Somebody's words stand within a sentence, whatever lines they had. */
function inOneLine(text: string): string {
  return text.trim().replace(/\s+/g, ' ');
}
