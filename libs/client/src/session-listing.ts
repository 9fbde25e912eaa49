/** A session as it stands in lists: what its newest record says by itself. */
import {
  decodeRecord,
  hasEnded,
  type JournalRecord,
  type StateValue,
  type StopReason,
  tombstoneIn,
  topState,
} from '@coxswain/protocol';

/** One line of a list of sessions. */
export interface SessionListing {
  readonly session_id: string;
  /** The newest record. */
  readonly n: number;
  /** When it was written, ISO 8601. */
  readonly at: string;
  readonly state: StateValue;
  /** How the newest run ended; null while it runs, and where only older records say so. */
  readonly stop_reason: StopReason | null;
  /** Why the newest record cannot be read; `state` is then `unreadable`, `n` 0 and `at` empty. */
  readonly unreadable?: string;
  /** Of a deleted session, whose `state` is `deleted`: `at` is when, `n` how many records it had, and here is by whom and why. */
  readonly deleted?: { readonly by: string | null; readonly reason: string | null };
}

/** The listing of a session by the bytes of its newest record. One that cannot be read says so and hides no other. */
export function listingFrom(sessionId: string, bytes: Uint8Array): SessionListing {
  const tombstone = tombstoneIn(bytes);
  if (tombstone) {
    const { records: n, deleted_at: at, deleted_by, reason = null } = tombstone;
    const deleted = { by: deleted_by?.name ?? null, reason };
    return { session_id: sessionId, n, at, state: 'deleted', stop_reason: null, deleted };
  }
  try {
    return listingOf(decodeRecord(bytes));
  } catch (error) {
    return {
      session_id: sessionId,
      n: 0,
      at: '',
      state: 'unreadable',
      stop_reason: null,
      unreadable: (error as Error).message,
    };
  }
}

function listingOf(record: JournalRecord): SessionListing {
  const end = record.events.findLast((event) => event.type === 'agent_end');
  return {
    session_id: record.session_id,
    n: record.n,
    at: record.at,
    state: record.state,
    stop_reason: end?.type === 'agent_end' ? end.stop_reason : null,
  };
}

/** How lists show a state: `failed (error)`, `stopped (cancelled)`, never a bare `stopped`. */
export function describeState(state: StateValue, stopReason: StopReason | null): string {
  const top = topState(state);
  return hasEnded(state) && stopReason !== null ? `${top} (${stopReason})` : top;
}
