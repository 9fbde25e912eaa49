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

/** What a tab has, and what its address has brought beside it. */
export interface TakenToken {
  /** The token of this tab: the one that was kept, else the one of the address; null where there is none. */
  readonly token: string | null;
  /** Another one that the address has brought: whether it is to be the tab’s has to be asked. */
  readonly offered: string | null;
}

/** The token of this tab. The one in the address is taken out of there, and kept where none was. */
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
