/** A page of a list of sessions. */
import type { BusClient, BusWire, PlacedSession, WireSessionListing } from '@coxswain/client';
import { matchPrefix } from '../instance/resolve-session.ts';

/** Of so many all are read, in one go: no more than a page of them takes. */
const ALL_READ_MAX = 1_000;
const READ_SIDE_BY_SIDE = 16;

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
  return { items, left: all.length - from - items.length };
}

/** A page, and how many there are that it does not show. */
export interface PageOfSessions extends Page<WireSessionListing> {
  /** Deleted ones that were passed over. */
  readonly unlisted: number;
  /** Of all. */
  readonly total: number;
}

/**
 * Reads a page, newest first. Where there are many sessions no more of them are read than it shows, so that `left` counts deleted
 * ones, too.
 * @throws CliError as {@link pageOf}.
 */
export async function pageOfSessions(
  wire: Pick<BusWire, 'listings' | 'newestSessions'>,
  client: Pick<BusClient, 'sessionIds'>,
  wanted: WantedPage & { readonly deleted: boolean },
): Promise<PageOfSessions> {
  const { total, sessions } = await wire.newestSessions();
  if (total > ALL_READ_MAX && wanted.limit <= ALL_READ_MAX) return firstOf(client, total, sessions, wanted);
  await sessions.return();
  const all = (await wire.listings()).reverse();
  const listed = wanted.deleted ? all : all.filter(({ deleted }) => !deleted);
  return { ...pageOf(listed, wanted), unlisted: all.length - listed.length, total: all.length };
}

async function firstOf(
  client: Pick<BusClient, 'sessionIds'>,
  total: number,
  sessions: AsyncIterable<PlacedSession>,
  { limit, after, deleted }: WantedPage & { readonly deleted: boolean },
): Promise<PageOfSessions> {
  const behind = after === undefined ? null : matchPrefix(after, await client.sessionIds());
  const items: WireSessionListing[] = [];
  let passed = 0;
  let unlisted = 0;
  let found = behind === null;
  let some: PlacedSession[] = [];
  const read = async () => {
    for (const listing of await Promise.all(some.map((one) => one.listing()))) {
      passed++;
      if (listing === null || (listing.deleted && !deleted)) unlisted++;
      else items.push(listing);
    }
    some = [];
  };
  for await (const one of sessions) {
    if (found) some.push(one);
    else {
      passed++;
      found = one.sessionId === behind;
    }
    if (some.length === Math.min(READ_SIDE_BY_SIDE, limit - items.length)) await read();
    if (items.length === limit) break;
  }
  await read();
  return { items, left: Math.max(0, total - passed), unlisted, total };
}
