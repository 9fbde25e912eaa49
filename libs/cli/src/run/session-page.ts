/** A page of a list of sessions. */
import { matchPrefix } from '../instance/resolve-session.ts';

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
