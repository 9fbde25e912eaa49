/** Seals the tombstone of a session: the last record of its journal. */
import { type Actor, deletionSentence, type SessionRef, TOMBSTONE_VERSION, tombstoneBytes } from '@coxswain/protocol';
import { type SealedRecord, sha256Hex } from './append-record.ts';

/** Who deleted a session, when, and why. */
export interface DeletedBy {
  /** ISO 8601. */
  readonly at: string;
  readonly by?: Actor | undefined;
  /** Ignored unless it is a string. */
  readonly reason?: unknown;
}

/** Makes the tombstone of a session with `n` records, whose newest has this hash; and the sentence about it for people. */
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
