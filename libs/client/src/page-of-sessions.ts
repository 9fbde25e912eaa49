/** A page of sessions: the newest first, and where the next page begins. */
import { type SessionStatus, topState } from '@coxswain/protocol';
import { ReadRefusedError } from './client-errors.ts';
import { cursorOf, partsOfCursor } from './page-cursor.ts';
import {
  type ListedSession,
  type ListQuery,
  SESSIONS_PAGE,
  type SessionListing,
  type SessionsPage,
} from './session-listing.ts';

/** Sessions whose persona one page may look up; the next page goes on behind them. */
const PERSONAS_LOOKED_UP_MAX = 256;
const ASKED_SIDE_BY_SIDE = 16;

/** Asks a host what a session is doing. */
type StatusOf = (sessionId: string) => Promise<SessionStatus>;

/** One page of all the sessions that there are. @throws ReadRefusedError `invalid_field`. */
export async function pageOf(
  all: readonly SessionListing[],
  { state, persona, details = false, limit = SESSIONS_PAGE.sessionsDefault, cursor }: ListQuery,
  statusOf: StatusOf,
): Promise<SessionsPage> {
  if (!Number.isInteger(limit) || limit < 1 || limit > SESSIONS_PAGE.sessionsMax)
    throw new ReadRefusedError('invalid_field', `limit: must be 1 to ${SESSIONS_PAGE.sessionsMax}`, 'limit');
  const behind = cursor === undefined ? null : readCursor(cursor);
  const wanted = all
    .filter((listing) => (state === undefined ? !listing.deleted : topState(listing.state) === state))
    .sort(newestFirst)
    .filter((listing) => behind === null || newestFirst(listing, behind) > 0);
  if (persona === undefined) {
    const page = wanted.slice(0, limit);
    const sessions = details ? await withDetails(page, statusOf) : page;
    return { sessions, next_cursor: wanted.length > limit ? cursorAt(page.at(-1)) : null };
  }
  const sessions: ListedSession[] = [];
  let looked = 0;
  while (looked < Math.min(wanted.length, PERSONAS_LOOKED_UP_MAX) && sessions.length < limit) {
    const some = wanted.slice(looked, looked + Math.min(ASKED_SIDE_BY_SIDE, limit - sessions.length));
    looked += some.length;
    for (const listed of await withDetails(some, statusOf))
      if (listed.details?.persona === persona) sessions.push(listed);
  }
  return { sessions, next_cursor: looked < wanted.length ? cursorAt(wanted[looked - 1]) : null };
}

async function withDetails(listings: readonly SessionListing[], statusOf: StatusOf): Promise<ListedSession[]> {
  const listed: ListedSession[] = [];
  for (let start = 0; start < listings.length; start += ASKED_SIDE_BY_SIDE) {
    const some = listings.slice(start, start + ASKED_SIDE_BY_SIDE);
    listed.push(...(await Promise.all(some.map((listing) => detailed(listing, statusOf)))));
  }
  return listed;
}

/** A list is a list, also where a session has just been deleted or no host is there to ask. */
async function detailed(listing: SessionListing, statusOf: StatusOf): Promise<ListedSession> {
  if (listing.deleted || listing.unreadable !== undefined) return { ...listing, details: null };
  try {
    const status = await statusOf(listing.session_id);
    const { persona, model, turn, cost_usd, usage, parent, approvals } = status;
    return {
      ...listing,
      stop_reason: listing.stop_reason ?? status.stop_reason,
      details: { persona, model, turn, cost_usd, usage, parent, approvals: approvals.length },
    };
  } catch {
    // Said by null.
    return { ...listing, details: null };
  }
}

interface Place {
  readonly at: string;
  readonly session_id: string;
}

/** By time, and by id where that is the same: every page follows from the one before, whatever is written meanwhile. */
function newestFirst(one: Place, other: Place): number {
  if (one.at !== other.at) return one.at < other.at ? 1 : -1;
  if (one.session_id === other.session_id) return 0;
  return one.session_id < other.session_id ? 1 : -1;
}

function cursorAt(place: Place | undefined): string | null {
  return place ? cursorOf([place.at, place.session_id]) : null;
}

function readCursor(cursor: string): Place {
  const [at, session_id] = partsOfCursor(cursor, 2);
  return { at, session_id } as Place;
}
