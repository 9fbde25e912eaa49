/** A page of sessions: the newest first, and where the next page begins. */
import { type SessionStatus, topState } from '@coxswain/protocol';
import { ReadRefusedError } from './client-errors.ts';
import { type ListPlace, newestFirst, type PlacedSession } from './newest-sessions.ts';
import { cursorOf, cursorUnknown, partsOfCursor } from './page-cursor.ts';
import {
  type ListQuery,
  SESSIONS_PAGE,
  type WireListedSession,
  type WireSessionListing,
  type WireSessionsPage,
} from './session-listing.ts';

/** Sessions whose persona one page may look up; the next page goes on behind them. */
const PERSONAS_LOOKED_UP_MAX = 256;
const ASKED_SIDE_BY_SIDE = 16;

/** Asks a host what a session is doing. */
type StatusOf = (sessionId: string) => Promise<SessionStatus>;

/**
 * One page.
 * @param all those that there are, newest first; no more of them are looked at than the page needs.
 * @throws ReadRefusedError `invalid_field`.
 */
export async function pageOf(
  all: AsyncIterable<PlacedSession>,
  { state, persona, details = false, limit = SESSIONS_PAGE.sessionsDefault, cursor }: ListQuery,
  statusOf: StatusOf,
): Promise<WireSessionsPage> {
  if (!Number.isInteger(limit) || limit < 1 || limit > SESSIONS_PAGE.sessionsMax)
    throw new ReadRefusedError('invalid_field', `limit: must be 1 to ${SESSIONS_PAGE.sessionsMax}`, 'limit');
  const behind = cursor === undefined ? null : readCursor(cursor);
  const isWanted = (listing: WireSessionListing) =>
    state === undefined ? !listing.deleted : topState(listing.state) === state;
  const wanted = wantedOf(all, behind, isWanted, limit);
  return persona === undefined
    ? anyPersonas(wanted, limit, details ? statusOf : null)
    : ofPersona(wanted, limit, persona, statusOf);
}

interface Found {
  readonly place: ListPlace;
  readonly listing: WireSessionListing;
}

/** What each says is read of a few side by side: of no more than one page, and the one behind it. */
async function* wantedOf(
  all: AsyncIterable<PlacedSession>,
  behind: ListPlace | null,
  isWanted: (listing: WireSessionListing) => boolean,
  limit: number,
): AsyncGenerator<Found, void, undefined> {
  const atOnce = Math.min(limit + 1, ASKED_SIDE_BY_SIDE);
  let some: PlacedSession[] = [];
  const read = async () => {
    const listings = await Promise.all(some.map(async (place) => ({ place, listing: await place.listing() })));
    some = [];
    return listings.flatMap(({ place, listing }) => (listing && isWanted(listing) ? [{ place, listing }] : []));
  };
  for await (const place of all) {
    if (behind !== null && newestFirst(place, behind) <= 0) continue;
    some.push(place);
    if (some.length === atOnce) yield* await read();
  }
  yield* await read();
}

async function anyPersonas(
  wanted: AsyncIterable<Found>,
  limit: number,
  statusOf: StatusOf | null,
): Promise<WireSessionsPage> {
  const page: Found[] = [];
  let more = false;
  for await (const found of wanted) {
    more = page.length === limit;
    if (more) break;
    page.push(found);
  }
  const listings = page.map(({ listing }) => listing);
  const sessions = statusOf === null ? listings : await withDetails(listings, statusOf);
  return { sessions, next_cursor: more ? cursorAt(page.at(-1)) : null };
}

async function ofPersona(
  wanted: AsyncIterable<Found>,
  limit: number,
  persona: string,
  statusOf: StatusOf,
): Promise<WireSessionsPage> {
  const sessions: WireListedSession[] = [];
  let looked = 0;
  let last: Found | undefined;
  let some: Found[] = [];
  const look = async () => {
    looked += some.length;
    last = some.at(-1) ?? last;
    for (const listed of await withDetails(
      some.map(({ listing }) => listing),
      statusOf,
    ))
      if (listed.details?.persona === persona) sessions.push(listed);
    some = [];
  };
  for await (const found of wanted) {
    if (looked >= PERSONAS_LOOKED_UP_MAX || sessions.length >= limit) return { sessions, next_cursor: cursorAt(last) };
    some.push(found);
    if (some.length >= Math.min(ASKED_SIDE_BY_SIDE, limit - sessions.length)) await look();
  }
  await look();
  return { sessions, next_cursor: null };
}

async function withDetails(listings: readonly WireSessionListing[], statusOf: StatusOf): Promise<WireListedSession[]> {
  const listed: WireListedSession[] = [];
  for (let start = 0; start < listings.length; start += ASKED_SIDE_BY_SIDE) {
    const some = listings.slice(start, start + ASKED_SIDE_BY_SIDE);
    listed.push(...(await Promise.all(some.map((listing) => detailed(listing, statusOf)))));
  }
  return listed;
}

/** A list is a list, also where a session has just been deleted or no host is there to ask. */
async function detailed(listing: WireSessionListing, statusOf: StatusOf): Promise<WireListedSession> {
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

function cursorAt(found: Found | undefined): string | null {
  return found ? cursorOf([String(found.place.writtenNs), found.place.sessionId]) : null;
}

function readCursor(cursor: string): ListPlace {
  const [written = '', sessionId = ''] = partsOfCursor(cursor, 2);
  // One of an older release has a date there.
  if (!/^\d{1,20}$/.test(written)) throw cursorUnknown();
  return { sessionId, writtenNs: BigInt(written) };
}
