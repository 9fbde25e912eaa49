/**
 * Stores the token of this tab. It arrives in the fragment of the address, which browsers do not send to servers. The
 * page removes it from the address first, so that it does not enter the history. It is lost when the tab closes. Pages
 * of other sites cannot read it or make the browser send it, because it is not a cookie.
 */

const KEY = 'coxswain.token';
/** The token, and the place to show. */
const FRAGMENT = /^#token=([\x21-\x25\x27-\x7e]+)(?:&at=(\/[\x21-\x7e]*))?$/;

/** The used members of a window. */
export interface TokenPlace {
  readonly location: Pick<Location, 'hash' | 'pathname'>;
  readonly history: Pick<History, 'replaceState'>;
  readonly sessionStorage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;
}

/** The token of a tab, and another one from its address. */
export interface TakenToken {
  /** The token of this tab: the stored one, otherwise the one from the address; null without one. */
  readonly token: string | null;
  /** Another token from the address: the user decides whether the tab uses it. */
  readonly offered: string | null;
}

/** Reads the token of this tab. A token in the address is removed from it, and stored if the tab has none. */
export function takeToken({ location, history, sessionStorage }: TokenPlace): TakenToken {
  const kept = sessionStorage.getItem(KEY);
  const [, given, at = '/'] = FRAGMENT.exec(location.hash) ?? [];
  if (given === undefined) return { token: kept, offered: null };
  const token = unescaped(given);
  history.replaceState(null, '', `${location.pathname}#${at}`);
  if (kept !== null) return { token: kept, offered: kept === token ? null : token };
  sessionStorage.setItem(KEY, token);
  return { token, offered: null };
}

/** Whether the address contains a token. */
export function bringsToken({ hash }: Pick<Location, 'hash'>): boolean {
  return FRAGMENT.test(hash);
}

/** Stores a token for this tab. */
export function keepToken({ sessionStorage }: TokenPlace, token: string): void {
  sessionStorage.setItem(KEY, token);
}

/** Removes the token of this tab. */
export function forgetToken({ sessionStorage }: TokenPlace): void {
  sessionStorage.removeItem(KEY);
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // The token was not escaped.
    return text;
  }
}
