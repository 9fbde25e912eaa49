/**
 * The token of this tab. It comes in the fragment of the address, which browsers send to nobody, and is taken out of it before
 * anything else happens: it stays out of the history, and is gone with the tab. Pages of other sites can neither read it nor
 * have it sent, as it is no cookie.
 */

const KEY = 'coxswain.token';
/** The token, and where the page is to go with it. */
const FRAGMENT = /^#token=([\x21-\x25\x27-\x7e]+)(?:&at=(\/[\x21-\x7e]*))?$/;

/** What of a window is used. */
export interface TokenPlace {
  readonly location: Pick<Location, 'hash' | 'pathname'>;
  readonly history: Pick<History, 'replaceState'>;
  readonly sessionStorage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;
}

/** The token of this tab: the one in the address, which it takes out of there, or the one that was kept; else null. */
export function takeToken({ location, history, sessionStorage }: TokenPlace): string | null {
  const [, given, at = '/'] = FRAGMENT.exec(location.hash) ?? [];
  if (given === undefined) return sessionStorage.getItem(KEY);
  const token = unescaped(given);
  history.replaceState(null, '', `${location.pathname}#${at}`);
  sessionStorage.setItem(KEY, token);
  return token;
}

/** Whether the address has a token in it. */
export function bringsToken({ hash }: Pick<Location, 'hash'>): boolean {
  return FRAGMENT.test(hash);
}

/** Keeps a token for this tab. */
export function keepToken({ sessionStorage }: TokenPlace, token: string): void {
  sessionStorage.setItem(KEY, token);
}

/** Forgets it. */
export function forgetToken({ sessionStorage }: TokenPlace): void {
  sessionStorage.removeItem(KEY);
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Not escaped at all.
    return text;
  }
}
