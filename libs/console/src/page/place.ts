/** A place in the console, encoded in the fragment of the address so that it can be bookmarked and shared. */

/** The views of one session. */
export const TABS = ['transcript', 'timeline', 'statechart', 'tree', 'usage'] as const;
/** A view of a session. */
export type Tab = (typeof TABS)[number];

/** A place in the console. */
export type Place =
  | { readonly page: 'sessions' }
  | { readonly page: 'new' }
  | {
      readonly page: 'session';
      readonly sessionId: string;
      readonly tab: Tab;
      /** The last record to show; null: all records, and new ones. */
      readonly at: number | null;
    };

/** Parses a fragment; the list of sessions if it is not a place. */
export function placeOf(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  if (path === 'new') return { page: 'new' };
  const sessionId = /^sessions\/([A-Za-z0-9_-]{1,64})$/.exec(path)?.[1];
  if (sessionId === undefined) return { page: 'sessions' };
  const said = new URLSearchParams(query);
  const tab = TABS.find((name) => name === said.get('tab')) ?? 'transcript';
  const at = Number(said.get('at'));
  return { page: 'session', sessionId, tab, at: Number.isSafeInteger(at) && at > 0 ? at : null };
}

/** Formats the fragment of a place. */
export function hashOf(place: Place): string {
  if (place.page !== 'session') return place.page === 'new' ? '#/new' : '#/';
  const said = new URLSearchParams();
  if (place.tab !== 'transcript') said.set('tab', place.tab);
  if (place.at !== null) said.set('at', String(place.at));
  const query = said.toString();
  return `#/sessions/${place.sessionId}${query === '' ? '' : `?${query}`}`;
}

/** The place of a session, live in its transcript. */
export function sessionPlace(sessionId: string): Place {
  return { page: 'session', sessionId, tab: 'transcript', at: null };
}
