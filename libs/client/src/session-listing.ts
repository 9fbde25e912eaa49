/** A session in a list: the data of its newest record. */
import {
  type CamelCased,
  decodeRecord,
  deletedSessionOf,
  fromWire,
  hasEnded,
  type JournalRecord,
  ListedSessionDocument,
  type SessionStateName,
  type SessionStatus,
  type StateValue,
  type StopReason,
  tombstoneIn,
  topState,
} from '@coxswain/protocol';

/** A session in a list. `details` are present if requested; null if no host responded. */
export type ListedSession = CamelCased<ListedSessionDocument>;

/** Converts a listed session to camelCase. */
export function listedSession(listed: WireListedSession): ListedSession {
  return fromWire(ListedSessionDocument, listed as ListedSessionDocument);
}

/** A session in a list, without details. */
export interface WireSessionListing {
  readonly session_id: string;
  /** The number of the newest record. */
  readonly n: number;
  /** The time of the newest record, ISO 8601. */
  readonly at: string;
  readonly state: StateValue;
  /** How the newest run ended; null during a run, or if only older records contain it. */
  readonly stop_reason: StopReason | null;
  /** Why the newest record cannot be read; `state` is then `unreadable`, `n` 0 and `at` empty. */
  readonly unreadable?: string;
  /**
   * Who deleted the session and why. `state` is then `deleted`, `at` the time of the deletion, `n` the number of its
   * records.
   */
  readonly deleted?: { readonly by: string | null; readonly reason: string | null };
}

/** Filters and paging of a list. */
export interface ListQuery {
  /** Only sessions with this top-level state. Deleted sessions are listed with `deleted` only. */
  readonly state?: string | undefined;
  /** Only sessions of this persona. A page may be short although more pages follow. */
  readonly persona?: string | undefined;
  /** Queries hosts for details that the list does not have: persona, model, cost, pending approvals. */
  readonly details?: boolean | undefined;
  /** The maximum number of sessions per page, 1 to 500. Default 100. */
  readonly limit?: number | undefined;
  /**
   * The `next_cursor` of the previous page. All pages together show each session that exists during all of them. The
   * last ones may repeat sessions that changed.
   */
  readonly cursor?: string | undefined;
}

/** Filters of a loop over sessions. */
export interface SessionsQuery extends Pick<ListQuery, 'persona' | 'details'> {
  /** Only sessions in this state. */
  readonly state?: SessionStateName | undefined;
  /** The maximum number of sessions; default: no limit. */
  readonly limit?: number | undefined;
}

/** The details of a listed session, as its host reports them. */
export type WireListedDetails = Pick<SessionStatus, 'persona' | 'model' | 'turn' | 'cost_usd' | 'usage' | 'parent'> & {
  /** The number of pending approvals. */
  readonly approvals: number;
};

/** A listed session with details, in its wire form. */
export interface WireListedSession extends WireSessionListing {
  /** Present if requested; null if no host responded. */
  readonly details?: WireListedDetails | null;
}

/** A session as the index has it: with its pending approvals, if its entry has them. */
export interface IndexedSession extends WireListedSession {
  readonly approvals?: SessionStatus['approvals'];
}

/** A page of sessions. */
export interface WireSessionsPage {
  readonly sessions: WireListedSession[];
  /** The cursor of the next page; null on the last page. */
  readonly next_cursor: string | null;
}

/** The maximum and the default size of a page. */
export const SESSIONS_PAGE = { sessionsMax: 500, sessionsDefault: 100 } as const;

/** Builds a listing from the bytes of the newest record. An unreadable record is listed as `unreadable`. */
export function listingFrom(sessionId: string, bytes: Uint8Array): WireSessionListing {
  const tombstone = tombstoneIn(bytes);
  if (tombstone) return deletedSessionOf(sessionId, tombstone) as WireSessionListing;
  try {
    return listingOf(decodeRecord(bytes));
  } catch (error) {
    return unreadableListing(sessionId, error as Error);
  }
}

/** Builds the listing of a session whose newest record cannot be read. */
export function unreadableListing(sessionId: string, { message: unreadable }: Error): WireSessionListing {
  return { session_id: sessionId, n: 0, at: '', state: 'unreadable', stop_reason: null, unreadable };
}

function listingOf(record: JournalRecord): WireSessionListing {
  const end = record.events.findLast((event) => event.type === 'agent_end');
  return {
    session_id: record.session_id,
    n: record.n,
    at: record.at,
    state: record.state,
    stop_reason: end?.type === 'agent_end' ? end.stop_reason : null,
  };
}

/** Formats a state for lists, with its stop reason if it is known: `failed (error)`, `stopped (cancelled)`. */
export function describeState(state: StateValue, stopReason: StopReason | null): string {
  const top = topState(state);
  return hasEnded(state) && stopReason !== null ? `${top} (${stopReason})` : top;
}
