/**
 * A page of sessions, the most recently changed first, and the start of the next page.
 *
 * A walk is the first page and all pages that follow it by their cursors. It shows each session at least once that exists
 * during all of it. Its parts, in this order:
 *
 * 1. The index, as ordered when the walk began: by wake-ups, starts of runs and passivations. A page reads a range of it,
 *    sorts it by the times of the newest records, and shows the first sessions. The next page shows others of the range.
 * 2. Sessions without an entry, by id.
 * 3. Sessions whose entries have been written since the walk began, by id: they woke, left memory or started. Their
 *    entries are no longer where the walk expects them, so they may be missing in the other parts, or repeated here. Ids
 *    do not change, so this part ends.
 */
import { listedSessionOf, type SessionStatus, topState } from '@coxswain/protocol';
import { ReadRefusedError } from './client-errors.ts';
import type { ListPlace, PlacedSession } from './newest-sessions.ts';
import { type IdStart, type IndexStart, type PageStart, startOf, wordOf } from './page-start.ts';
import { type ListQuery, SESSIONS_PAGE, type WireListedSession, type WireSessionsPage } from './session-listing.ts';

/** The minimum number of sessions per range. With fewer, a short page would have the order of the index. */
export const RANGE_SESSIONS = 100;
/**
 * The maximum number of sessions that a page examines; the next page continues after them. If more entries than this are
 * written during a walk, its last part misses the newest ones.
 */
export const LOOKED_AT_MAX = 10_000;
/** The number of host queries after which a page with a persona filter ends its range. */
const ASKED_MAX = 256;
const READ_SIDE_BY_SIDE = 16;

/** Queries a host for the state of a session. */
type StatusOf = (sessionId: string) => Promise<SessionStatus>;

/** The sessions of a tenant. */
export interface SessionSource {
  /** The sessions in the order of the index, at least those after a position. It is read only as far as needed. */
  list(after: ListPlace | null): Promise<AsyncIterable<PlacedSession>>;
  /** Sessions with an entry after a sequence number, in any order, at most {@link LOOKED_AT_MAX}. */
  since(seq: number): Promise<readonly PlacedSession[]>;
}

/** The filters of a page, and whether it has queried enough hosts. */
interface Filter {
  wanted(listing: WireListedSession): Promise<WireListedSession | null>;
  isFull(): boolean;
}

/** A page, unless its details are still missing. */
interface Shown {
  readonly page: readonly WireListedSession[];
  /** Null at the end of the walk. */
  readonly next: PageStart | null;
}

/**
 * Builds one page.
 * @throws ReadRefusedError `invalid_field`.
 */
export async function pageOf(source: SessionSource, query: ListQuery, statusOf: StatusOf): Promise<WireSessionsPage> {
  const { persona, details = false, limit = SESSIONS_PAGE.sessionsDefault, cursor } = query;
  if (!Number.isInteger(limit) || limit < 1 || limit > SESSIONS_PAGE.sessionsMax)
    throw new ReadRefusedError('invalid_field', `limit: must be 1 to ${SESSIONS_PAGE.sessionsMax}`, 'limit');
  const start = cursor === undefined ? null : startOf(cursor);
  const filter = filterOf(query, statusOf);
  const { page, next } =
    start?.part === 'since'
      ? await pageSince(source, start, limit, filter)
      : await pageOfList(source, start, limit, filter);
  const sessions =
    details || persona !== undefined
      ? await withDetails(page, statusOf)
      : page.map(({ details: _, ...listing }) => listing);
  return { sessions, next_cursor: next && wordOf(next) };
}

function filterOf({ state, persona }: ListQuery, statusOf: StatusOf): Filter {
  let asked = 0;
  return {
    async wanted(listing) {
      if (state === undefined ? listing.deleted : topState(listing.state) !== state) return null;
      if (persona === undefined) return listing;
      if (listing.details === undefined) asked++;
      const known = await detailed(listing, statusOf);
      return known.details?.persona === persona ? known : null;
    },
    isFull: () => asked >= ASKED_MAX,
  };
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

type ListStart = IndexStart | IdStart<'unindexed'>;

/** A page of the first two parts of a walk. */
async function pageOfList(
  source: SessionSource,
  start: ListStart | null,
  limit: number,
  filter: Filter,
): Promise<Shown> {
  const all = await source.list(start && placeBefore(start));
  const { found, walk, upTo, from, next } = await readRange(
    listingsOf(all, filter.wanted),
    start,
    limit,
    filter.isFull,
  );
  const shown = start?.part === 'index' ? start.shown : NONE_SHOWN;
  if (upTo > 0) found.sort((one, other) => mostRecentFirst(one.listing, other.listing));
  const left = found.filter(({ seq }) => !shown.has(seq));
  const page = left.slice(0, limit);
  const listings = page.map(({ listing }) => listing);
  if (left.length > limit) {
    const known = new Set([...shown, ...page.map(({ seq }) => seq)]);
    return { page: listings, next: { part: 'index', walk, upTo, from, shown: known } };
  }
  if (next) return { page: listings, next };
  const ids = new Set(listings.map(({ session_id }) => session_id));
  const isIncomplete = (await source.since(walk)).some(({ sessionId }) => !ids.has(sessionId));
  return { page: listings, next: isIncomplete ? { part: 'since', walk, id: '' } : null };
}

/** A page of the last part of a walk. */
async function pageSince(
  source: SessionSource,
  { walk, id }: IdStart<'since'>,
  limit: number,
  filter: Filter,
): Promise<Shown> {
  const rest = (await source.since(walk))
    .filter(({ sessionId }) => sessionId > id)
    .sort((one, other) => (one.sessionId < other.sessionId ? -1 : 1));
  const page: WireListedSession[] = [];
  let last: string | null = null;
  for await (const { place, listing } of listingsOf(rest, filter.wanted)) {
    if (page.length >= limit || filter.isFull())
      return { page: page.sort(mostRecentFirst), next: { part: 'since', walk, id: last ?? id } };
    last = place.sessionId;
    if (listing) page.push(listing);
  }
  return { page: page.sort(mostRecentFirst), next: null };
}

const NONE_SHOWN: ReadonlySet<number> = new Set();

/** The index position before the sessions of a page. */
function placeBefore(start: ListStart): ListPlace {
  if (start.part === 'index') return { seq: start.upTo + 1, sessionId: '' };
  return start.id === '' ? { seq: 1, sessionId: '' } : { seq: 0, sessionId: start.id };
}

/** The sessions of a range, and the start of the next range. */
interface Range {
  readonly found: { readonly seq: number; readonly listing: WireListedSession }[];
  readonly walk: number;
  /** The highest and lowest sequence numbers; 0 for sessions without an entry. */
  readonly upTo: number;
  readonly from: number;
  /** Null at the end of the list. */
  readonly next: PageStart | null;
}

async function readRange(
  all: AsyncIterable<ReadListing>,
  start: ListStart | null,
  limit: number,
  isFull: () => boolean,
): Promise<Range> {
  // A range that an earlier page has read, and that ends where it ended then.
  const read = start?.part === 'index' && start.from > 0 ? start : null;
  const found: Range['found'] = [];
  let first: ListPlace | null = null;
  let last: ListPlace | null = null;
  let lookedAt = 0;
  const isFullAt = ({ seq }: ListPlace, last: ListPlace): boolean => {
    if (lookedAt >= LOOKED_AT_MAX || isFull()) return true;
    if (seq === 0) return last.seq > 0 || found.length >= limit;
    return read === null && found.length >= Math.max(limit, RANGE_SESSIONS);
  };
  const walk = () => start?.walk ?? first?.seq ?? 0;
  const rangeTo = (next: PageStart | null): Range => {
    const upTo = read?.upTo ?? first?.seq ?? 0;
    return { found, walk: walk(), upTo, from: read?.from ?? last?.seq ?? 0, next };
  };
  for await (const { place, listing } of all) {
    if (start && isBefore(place, start)) continue;
    if (read && place.seq < read.from) return rangeTo(startAfter(walk(), { seq: read.from, sessionId: '' }));
    if (last !== null && isFullAt(place, last)) return rangeTo(startAfter(walk(), last, read));
    first ??= place;
    last = place;
    lookedAt++;
    if (listing) found.push({ seq: place.seq, listing });
  }
  return rangeTo(null);
}

/** The start after a session. @param read the range that the next page continues. */
function startAfter(walk: number, { seq, sessionId }: ListPlace, read: IndexStart | null = null): PageStart {
  if (read && seq > read.from) return { ...read, upTo: seq - 1 };
  if (seq > 1) return { part: 'index', walk, upTo: seq - 1, from: 0, shown: NONE_SHOWN };
  return { part: 'unindexed', walk, id: seq === 0 ? sessionId : '' };
}

function isBefore(place: ListPlace, start: ListStart): boolean {
  if (start.part === 'index') return place.seq > start.upTo;
  return place.seq > 0 || (start.id !== '' && place.sessionId >= start.id);
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
  all: AsyncIterable<PlacedSession> | Iterable<PlacedSession>,
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
