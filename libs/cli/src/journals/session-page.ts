/** Reads a page of a list of sessions. */
import {
  type BusClient,
  type BusWire,
  type ListPlace,
  listingsOf,
  mostRecentFirst,
  type WireListedSession,
} from '@coxswain/client';
import { SessionId } from '@coxswain/protocol';
import { matchPrefix } from '../instance/mod.ts';

/**
 * Up to this number of sessions, all are read and sorted by their newest records. With more, the index gives the order,
 * page by page.
 */
const ALL_READ_MAX = 1_000;

/** The requested part of a list. */
export interface WantedPage {
  /** Maximum number of entries. */
  readonly limit: number;
  /** The page starts after this session, given by its id or a prefix of it. */
  readonly after: string | undefined;
}

/** A part of a list, and what follows it. */
export interface Page<T> {
  readonly items: readonly T[];
  /** Number of entries after the last one of the page. */
  readonly left: number;
  /** The session after which the next page starts; undefined for an empty page. */
  readonly last: string | undefined;
}

/**
 * Cuts a page out of a sorted list. A session that changes between two pages moves to the top of the list: the later page
 * misses it. If it is the one in `after`, the page repeats entries instead.
 * @throws CliError if `after` is not in the list, or matches several sessions.
 */
export function pageOf<T extends { readonly session_id: string }>(
  all: readonly T[],
  { limit, after }: WantedPage,
): Page<T> {
  const ids = all.map(({ session_id }) => session_id);
  const from = after === undefined ? 0 : ids.indexOf(matchPrefix(after, ids)) + 1;
  const items = all.slice(from, from + limit);
  return { items, left: all.length - from - items.length, last: items.at(-1)?.session_id };
}

/** A page, and the numbers of sessions that it does not show. */
export interface PageOfSessions extends Page<WireListedSession> {
  /** Number of deleted sessions that were left out. A rejected start has no record: it is neither listed nor counted. */
  readonly unlisted: number;
  /** Number of all sessions. */
  readonly total: number;
}

/**
 * Reads a page, the most recently changed sessions first. With many sessions, only those of the page are read, so that
 * `left` also counts deleted ones.
 * @throws CliError as {@link pageOf}.
 */
export async function pageOfSessions(
  wire: Pick<BusWire, 'newestSessions' | 'placeInList'>,
  client: Pick<BusClient, 'sessionIds'>,
  { limit, after, deleted }: WantedPage & { readonly deleted: boolean },
): Promise<PageOfSessions> {
  const whole = await wire.newestSessions();
  if (whole.total <= ALL_READ_MAX) {
    const all: WireListedSession[] = [];
    let unlisted = 0;
    for await (const { listing } of listingsOf(whole.sessions))
      if (listing?.deleted && !deleted) unlisted++;
      else if (listing) all.push(listing);
    return { ...pageOf(all.sort(mostRecentFirst), { limit, after }), unlisted, total: all.length + unlisted };
  }
  let list = whole;
  if (after !== undefined) {
    await whole.sessions.return();
    list = await wire.newestSessions(await placeOf(wire, client, after));
  }
  const items: WireListedSession[] = [];
  let passed = 0;
  let unlisted = 0;
  let last: string | undefined;
  for await (const { place, listing } of listingsOf(list.sessions)) {
    if (items.length === limit) break;
    passed++;
    last = place.sessionId;
    if (listing?.deleted && !deleted) unlisted++;
    else if (listing) items.push(listing);
  }
  items.sort(mostRecentFirst);
  return { items, left: Math.max(0, list.left - passed), last, unlisted, total: list.total };
}

/** The place at which the page starts. With a whole id, the list of all ids is usually not read. */
async function placeOf(
  wire: Pick<BusWire, 'placeInList'>,
  client: Pick<BusClient, 'sessionIds'>,
  after: string,
): Promise<ListPlace> {
  const place = SessionId.safeParse(after).success ? await wire.placeInList(after) : null;
  if (place) return place;
  const sessionId = matchPrefix(after, await client.sessionIds());
  return (await wire.placeInList(sessionId)) ?? { sessionId, seq: 0 };
}
