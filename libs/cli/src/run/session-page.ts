/** A page of a list of sessions. */
import {
  type BusClient,
  type BusWire,
  type ListPlace,
  listingsOf,
  mostRecentFirst,
  type WireListedSession,
} from '@coxswain/client';
import { SessionId } from '@coxswain/protocol';
import { matchPrefix } from '../instance/resolve-session.ts';

/** Up to this number of sessions, all are read and ordered by their newest records. With more, the index gives the order, page by page. */
const ALL_READ_MAX = 1_000;

/** Which part of a list is wanted. */
export interface WantedPage {
  /** At most so many. */
  readonly limit: number;
  /** Those that stand behind this one, by its id or the beginning of it. */
  readonly after: string | undefined;
}

/** Some of a list, and what is behind them. */
export interface Page<T> {
  readonly items: readonly T[];
  /** So many stand behind the last. */
  readonly left: number;
  /** The session behind which the next page starts; undefined for an empty page. */
  readonly last: string | undefined;
}

/**
 * Cuts a page out of a list that keeps its order. A session that is written to meanwhile goes to the top of the list: the pages
 * behind repeat some then, and leave none out.
 * @throws CliError where `after` is not in the list, or could be several.
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

/** A page, and how many there are that it does not show. */
export interface PageOfSessions extends Page<WireListedSession> {
  /** Deleted ones that were passed over. */
  readonly unlisted: number;
  /** Of all. */
  readonly total: number;
}

/**
 * Reads a page, the most recently changed sessions first. Where there are many sessions no more of them are read than it shows, so
 * that `left` counts deleted ones, too.
 * @throws CliError as {@link pageOf}.
 */
export async function pageOfSessions(
  wire: Pick<BusWire, 'newestSessions' | 'placeInList'>,
  client: Pick<BusClient, 'sessionIds'>,
  { limit, after, deleted }: WantedPage & { readonly deleted: boolean },
): Promise<PageOfSessions> {
  const isHidden = (listing: WireListedSession | null) => listing === null || (listing.deleted && !deleted);
  const whole = await wire.newestSessions();
  if (whole.total <= ALL_READ_MAX) {
    const all: WireListedSession[] = [];
    let unlisted = 0;
    for await (const { listing } of listingsOf(whole.sessions))
      if (listing === null || isHidden(listing)) unlisted++;
      else all.push(listing);
    return { ...pageOf(all.sort(mostRecentFirst), { limit, after }), unlisted, total: whole.total };
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
    if (listing === null || isHidden(listing)) unlisted++;
    else items.push(listing);
  }
  items.sort(mostRecentFirst);
  return { items, left: Math.max(0, list.left - passed), last, unlisted, total: list.total };
}

/** Where the page starts. Most often the whole id is given: then no list of ids is read. */
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
