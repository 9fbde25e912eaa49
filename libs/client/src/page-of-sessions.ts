/**
 * A page of sessions, the most recently changed first, and the start of the next page.
 *
 * The index is ordered by wake-ups, starts of runs and passivations. A page therefore reads a range of the index, sorts
 * it by the times of the newest records, and shows the first sessions. The next page continues after these in the same
 * range. Sessions without an entry follow last, by id.
 */
import { listedSessionOf, type SessionStatus, topState } from '@coxswain/protocol';
import { ReadRefusedError } from './client-errors.ts';
import type { ListPlace, PlacedSession } from './newest-sessions.ts';
import { cursorOf, cursorUnknown, partsOfCursor } from './page-cursor.ts';
import { type ListQuery, SESSIONS_PAGE, type WireListedSession, type WireSessionsPage } from './session-listing.ts';

/** The minimum number of sessions per range. With fewer, a short page would have the order of the index. */
export const RANGE_SESSIONS = 100;
/** The maximum number of sessions that a page with a filter examines; the next page continues after them. */
const LOOKED_AT_MAX = 10_000;
/** The number of host queries after which a page with a persona filter ends its range. */
const ASKED_MAX = 256;
const READ_SIDE_BY_SIDE = 16;

/** Queries a host for the state of a session. */
type StatusOf = (sessionId: string) => Promise<SessionStatus>;

/** The start of a page. */
interface PageStart {
  /** The highest sequence number of the range; 0: only sessions without an entry are left. */
  readonly upTo: number;
  /** The lowest sequence number of the range; 0 if it has not been read yet. */
  readonly from: number;
  /** The last session that was shown; its id is empty at the start of a range. */
  readonly shown: Pick<WireListedSession, 'at' | 'session_id'>;
}

/** The sessions of a range, and the start of the next range. */
interface Range {
  readonly found: WireListedSession[];
  readonly upTo: number;
  readonly from: number;
  /** Null at the end of the list. */
  readonly next: PageStart | null;
}

const NONE = { at: '', session_id: '' };

/**
 * Builds one page.
 * @param all The sessions in the order of the index, at least from {@link placeBefore} on. It is read only as far as
 *   needed.
 * @throws ReadRefusedError `invalid_field`.
 */
export async function pageOf(
  all: AsyncIterable<PlacedSession>,
  { state, persona, details = false, limit = SESSIONS_PAGE.sessionsDefault, cursor }: ListQuery,
  statusOf: StatusOf,
): Promise<WireSessionsPage> {
  if (!Number.isInteger(limit) || limit < 1 || limit > SESSIONS_PAGE.sessionsMax)
    throw new ReadRefusedError('invalid_field', `limit: must be 1 to ${SESSIONS_PAGE.sessionsMax}`, 'limit');
  const start = cursor === undefined ? null : startOf(cursor);
  let asked = 0;
  const wanted = async (listing: WireListedSession): Promise<WireListedSession | null> => {
    if (state === undefined ? listing.deleted : topState(listing.state) !== state) return null;
    if (persona === undefined) return listing;
    if (listing.details === undefined) asked++;
    const known = await detailed(listing, statusOf);
    return known.details?.persona === persona ? known : null;
  };
  const range = await readRange(listingsOf(all, wanted), start, limit, () => asked >= ASKED_MAX);
  const isOrdered = range.upTo > 0;
  if (isOrdered) range.found.sort(mostRecentFirst);
  const rest =
    isOrdered && start?.shown.session_id
      ? range.found.filter((one) => mostRecentFirst(one, start.shown) > 0)
      : range.found;
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  const next = last && rest.length > limit ? { upTo: range.upTo, from: range.from, shown: last } : range.next;
  const sessions =
    details || persona !== undefined
      ? await withDetails(page, statusOf)
      : page.map(({ details: _, ...listing }) => listing);
  return { sessions, next_cursor: next && wordOf(next) };
}

/**
 * The index position before the sessions of a page; null for the first page.
 * @throws ReadRefusedError `invalid_field`.
 */
export function placeBefore(cursor: string | undefined): ListPlace | null {
  if (cursor === undefined) return null;
  const { upTo, shown } = startOf(cursor);
  return upTo === 0 && shown.session_id ? { seq: 0, sessionId: shown.session_id } : { seq: upTo + 1, sessionId: '' };
}

/**
 * Sorts by the time of the newest record, then by id, both descending. Unreadable sessions have no time and come last.
 */
export function mostRecentFirst(
  one: Pick<WireListedSession, 'at' | 'session_id'>,
  other: Pick<WireListedSession, 'at' | 'session_id'>,
): number {
  if (one.at !== other.at) return one.at < other.at ? 1 : -1;
  if (one.session_id === other.session_id) return 0;
  return one.session_id < other.session_id ? 1 : -1;
}

async function readRange(
  all: AsyncIterable<ReadListing>,
  start: PageStart | null,
  limit: number,
  isFull: () => boolean,
): Promise<Range> {
  const found: WireListedSession[] = [];
  let upTo = start?.from ? start.upTo : 0;
  let last: ListPlace | null = null;
  let lookedAt = 0;
  const isOver = (place: ListPlace): boolean => {
    if (start?.from) return place.seq < start.from;
    if (last === null) return false;
    if (place.seq === 0) return last.seq > 0 || found.length >= limit;
    return found.length >= Math.max(limit, RANGE_SESSIONS) || lookedAt >= LOOKED_AT_MAX || isFull();
  };
  for await (const { place, listing } of all) {
    if (start && isBefore(place, start)) continue;
    if (isOver(place)) {
      const from = start?.from || (last?.seq ?? 0);
      const next =
        from > 0
          ? { upTo: from - 1, from: 0, shown: NONE }
          : { upTo: 0, from: 0, shown: { at: '', session_id: last?.sessionId ?? '' } };
      return { found, upTo, from, next };
    }
    if (last === null && !start?.from) upTo = place.seq;
    last = place;
    lookedAt++;
    if (listing) found.push(listing);
  }
  return { found, upTo, from: start?.from || (last?.seq ?? 0), next: null };
}

function isBefore(place: ListPlace, { upTo, shown }: PageStart): boolean {
  if (upTo > 0) return place.seq > upTo;
  return place.seq > 0 || (shown.session_id !== '' && place.sessionId >= shown.session_id);
}

/** What a list has read of a session. */
export interface ReadListing {
  readonly place: ListPlace;
  /** Null for a session without records, and for an unwanted one. */
  readonly listing: WireListedSession | null;
  /** Its pending approvals; absent if the index does not have them. */
  readonly approvals?: SessionStatus['approvals'] | undefined;
}

/** Reads the listings of sessions, a few at a time. */
export async function* listingsOf(
  all: AsyncIterable<PlacedSession>,
  wanted: (listing: WireListedSession) => Promise<WireListedSession | null> = async (listing) => listing,
): AsyncGenerator<ReadListing, void, undefined> {
  let some: PlacedSession[] = [];
  const read = async () => {
    const read = await Promise.all(
      some.map(async (place): Promise<ReadListing> => {
        const indexed = await place.listing();
        if (indexed === null) return { place, listing: null };
        const { approvals, ...listing } = indexed;
        return { place, listing: await wanted(listing), approvals };
      }),
    );
    some = [];
    return read;
  };
  for await (const one of all) {
    some.push(one);
    if (some.length >= READ_SIDE_BY_SIDE) yield* await read();
  }
  yield* await read();
}

async function withDetails(listings: readonly WireListedSession[], statusOf: StatusOf): Promise<WireListedSession[]> {
  const listed: WireListedSession[] = [];
  for (let start = 0; start < listings.length; start += READ_SIDE_BY_SIDE) {
    const some = listings.slice(start, start + READ_SIDE_BY_SIDE);
    listed.push(...(await Promise.all(some.map((listing) => detailed(listing, statusOf)))));
  }
  return listed;
}

/** Adds details. A failed query does not fail the list: the session may just have been deleted, or no host responds. */
async function detailed(listing: WireListedSession, statusOf: StatusOf): Promise<WireListedSession> {
  if (listing.details !== undefined) return listing;
  if (listing.deleted || listing.unreadable !== undefined) return { ...listing, details: null };
  try {
    const { stop_reason, details = null } = listedSessionOf(await statusOf(listing.session_id));
    return { ...listing, stop_reason: listing.stop_reason ?? stop_reason, details };
  } catch {
    // `details: null` reports that no host responded.
    return { ...listing, details: null };
  }
}

function wordOf({ upTo, from, shown }: PageStart): string {
  return cursorOf([String(upTo), String(from), shown.at, shown.session_id]);
}

function startOf(cursor: string): PageStart {
  const [upTo = '', from = '', at = '', session_id = ''] = partsOfCursor(cursor, 4);
  if (!/^\d{1,15}$/.test(upTo) || !/^\d{1,15}$/.test(from)) throw cursorUnknown();
  return { upTo: Number(upTo), from: Number(from), shown: { at, session_id } };
}
