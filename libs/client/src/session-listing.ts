/** A session as it stands in lists: what its newest record says by itself. */
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

/** A session in a list. `details` stand there where they were asked for; null where no host has answered. */
export type ListedSession = CamelCased<ListedSessionDocument>;

/** A listed session with the names of TypeScript. */
export function listedSession(listed: WireListedSession): ListedSession {
  return fromWire(ListedSessionDocument, listed as ListedSessionDocument);
}

/** One line of a list of sessions. */
export interface WireSessionListing {
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

/** What a list is to have. */
export interface ListQuery {
  /** Only sessions whose top-level state has this name. Deleted ones are listed with `deleted` only. */
  readonly state?: string | undefined;
  /** Only sessions of this persona. A page may then be short, and another follow. */
  readonly persona?: string | undefined;
  /** Asks hosts what the list alone does not say: persona, model, cost, open approvals. */
  readonly details?: boolean | undefined;
  /** Sessions of a page, 1 to 500. Default 100. */
  readonly limit?: number | undefined;
  /** The `next_cursor` of the page before. */
  readonly cursor?: string | undefined;
}

/** Which sessions a loop goes through. */
export interface SessionsQuery extends Pick<ListQuery, 'persona' | 'details'> {
  /** Only sessions in this state. */
  readonly state?: SessionStateName | undefined;
  /** How many at most; default all. */
  readonly limit?: number | undefined;
}

/** What a host says of a listed session. */
export type WireListedDetails = Pick<SessionStatus, 'persona' | 'model' | 'turn' | 'cost_usd' | 'usage' | 'parent'> & {
  /** How many wait for a person. */
  readonly approvals: number;
};

/** One session of a page, in the form of the wire. */
export interface WireListedSession extends WireSessionListing {
  /** Where they were asked for; null where no host has answered. */
  readonly details?: WireListedDetails | null;
}

/** A page of sessions. */
export interface WireSessionsPage {
  readonly sessions: WireListedSession[];
  /** Gives the next page; null on the last. */
  readonly next_cursor: string | null;
}

/** The bounds of a page. */
export const SESSIONS_PAGE = { sessionsMax: 500, sessionsDefault: 100 } as const;

/** The listing of a session by the bytes of its newest record. One that cannot be read says so and hides no other. */
export function listingFrom(sessionId: string, bytes: Uint8Array): WireSessionListing {
  const tombstone = tombstoneIn(bytes);
  if (tombstone) return deletedSessionOf(sessionId, tombstone) as WireSessionListing;
  try {
    return listingOf(decodeRecord(bytes));
  } catch (error) {
    return unreadableListing(sessionId, error as Error);
  }
}

/** The listing of a session whose newest record cannot be read. */
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

/** How lists show a state: `failed (error)`, `stopped (cancelled)`, never a bare `stopped`. */
export function describeState(state: StateValue, stopReason: StopReason | null): string {
  const top = topState(state);
  return hasEnded(state) && stopReason !== null ? `${top} (${stopReason})` : top;
}
