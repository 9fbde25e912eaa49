/** The tombstone of a session, sealed like any record: what ends its journal. */
import { type Actor, deletionSentence, type SessionRef, TOMBSTONE_VERSION, tombstoneBytes } from '@coxswain/protocol';
import { type SealedRecord, sha256Hex } from './seal-record.ts';

/** Who deletes a session, when, and why. */
export interface DeletedBy {
  /** ISO 8601. */
  readonly at: string;
  readonly by?: Actor | undefined;
  /** Anything else than a text is left out. */
  readonly reason?: unknown;
}

/** Makes the tombstone for a session of `n` records, the newest with this hash. */
export function tombstoneOf(
  { sessionId }: SessionRef,
  { n, hash }: { readonly n: number; readonly hash: string },
  { at, by, reason }: DeletedBy,
): { readonly sealed: SealedRecord; readonly sentence: string } {
  const tombstone = {
    tombstone: TOMBSTONE_VERSION,
    session_id: sessionId,
    deleted_at: at,
    ...(by ? { deleted_by: by } : {}),
    ...(typeof reason === 'string' ? { reason } : {}),
    records: n,
    last_hash: hash,
  } as const;
  const bytes = tombstoneBytes(tombstone);
  return { sealed: { bytes, hash: sha256Hex(bytes), blobs: [] }, sentence: deletionSentence(tombstone) };
}
