/** The whole page: sign-in, navigation and keyboard shortcuts. */
import type { VNode } from 'preact';
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { connect, type SessionsClient } from '../browser-client.ts';
import { type SessionKeys, SessionPage } from '../session/session-page.tsx';
import { NewSession } from '../sessions/new-session.tsx';
import { SessionList } from '../sessions/session-list.tsx';
import { offeredModels } from '../sessions/start-form.ts';
import { useSessions } from '../sessions/use-sessions.ts';
import { OfferedToken } from '../sign-in/offered-token.tsx';
import { Scopes, useScopeCheck } from '../sign-in/scopes.ts';
import { SignIn } from '../sign-in/sign-in.tsx';
import { Token } from '../sign-in/token.ts';
import { bringsToken, forgetToken, keepToken, type TakenToken, takeToken } from '../sign-in/token-storage.ts';
import { Boundary } from './boundary.tsx';
import { Help } from './help.tsx';
import { problemText } from './outcome.tsx';
import { hashOf, type Place, placeOf, sessionPlace } from './place.ts';
import { type ShortcutKey, shortcutOf, takesLetters } from './shortcuts.ts';
import { chooseTheme, chosenTheme, nextTheme } from './theme.ts';

/** The page. `taken` has the token of this tab, and the one from its address. */
export function App({ taken }: { readonly taken: TakenToken }): VNode {
  const [token, setToken] = useState(taken.token);
  const [offered, setOffered] = useState(taken.offered);
  const [signedIn, setSignedIn] = useState<{ client: SessionsClient; scopes: readonly string[] } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  // A layout effect: a new token must not be used with the previous client.
  useLayoutEffect(() => {
    if (token === null) return;
    let left = false;
    let connected: SessionsClient | undefined;
    const signIn = async () => {
      connected = await connect({ gateway: location.origin, token });
      return { client: connected, scopes: (await connected.whoami()).scopes };
    };
    signIn().then(
      (made) => {
        if (left) return void made.client.close();
        keepToken(window, token);
        setProblem(null);
        setSignedIn(made);
      },
      (error) => {
        if (left) return;
        if ((error as { code?: unknown }).code === 'unauthorized') forgetToken(window);
        setProblem(problemText(error));
        setToken(null);
      },
    );
    return () => {
      left = true;
      setSignedIn(null);
      void connected?.close();
    };
  }, [token]);
  // Listeners for the address are layout effects: a change between the first rendering and a later effect would be
  // missed.
  useLayoutEffect(() => {
    // Pasting a sign-in link into the open page changes only the fragment, and loads nothing.
    const onHash = ({ oldURL }: HashChangeEvent) => {
      if (!bringsToken(location)) return;
      const now = takeToken(window);
      setOffered(now.offered);
      // The place is kept until the user has chosen a token.
      if (now.offered !== null && URL.canParse(oldURL)) history.replaceState(null, '', new URL(oldURL).hash || '#/');
      else setToken(now.token);
    };
    addEventListener('hashchange', onHash);
    return () => removeEventListener('hashchange', onHash);
  }, []);
  const refused = useCallback(() => {
    forgetToken(window);
    setProblem('The token is no longer valid.');
    setToken(null);
  }, []);
  const taking = useCallback((other: string) => {
    setOffered(null);
    setProblem(null);
    setToken(other);
  }, []);
  const staying = useCallback(() => setOffered(null), []);
  useEffect(() => {
    // The token of this tab was invalid.
    if (token === null && offered !== null) taking(offered);
  }, [token, offered, taking]);
  if (token === null && offered === null) return <SignIn problem={problem} onToken={setToken} />;
  return (
    <>
      {token !== null && offered !== null && (
        <OfferedToken key={offered} token={token} offered={offered} onTake={taking} onStay={staying} />
      )}
      {token === null || signedIn === null ? (
        <p class="empty">Connecting …</p>
      ) : (
        <Token.Provider value={token}>
          <Scopes.Provider value={signedIn.scopes}>
            <SignedIn client={signedIn.client} onRefused={refused} />
          </Scopes.Provider>
        </Token.Provider>
      )}
    </>
  );
}

const KEYS_OFF = 'coxswain.keys-off';

function SignedIn({ client, onRefused }: { readonly client: SessionsClient; readonly onRefused: () => void }) {
  const [place, goTo] = usePlace();
  const [theme, setTheme] = useState(() => chosenTheme(localStorage));
  const [helpOpen, setHelpOpen] = useState(false);
  const [keysOn, setKeysOn] = useState(() => localStorage.getItem(KEYS_OFF) === null);
  const keys = useRef<SessionKeys>({ onKey: null });
  const toFocus = useRef<HTMLElement | null>(null);
  const now = useNow();
  const hasScope = useScopeCheck();
  const feed = useSessions(client, onRefused);
  const models = offeredModels(feed.sessions);
  const onKey = useCallback(
    (key: ShortcutKey) => {
      if (key === '?') return setHelpOpen(true);
      if (key === 'n') return goTo({ page: 'new' });
      if (key === 'g') {
        toFocus.current =
          document.querySelector<HTMLElement>('.session-row[aria-current]') ??
          document.querySelector<HTMLElement>('.session-row');
        return goTo({ page: 'sessions' });
      }
      if (key === 't') return setTheme(nextTheme);
      keys.current.onKey?.(key);
    },
    [goTo],
  );
  useKeys(keysOn, onKey);
  useEffect(() => chooseTheme(localStorage, document.documentElement, theme), [theme]);
  const current = place.page === 'session' ? place.sessionId : null;
  // Layout effects move the focus before the next key press: a later effect would take it from where that key moved it.
  useLayoutEffect(() => {
    // On a phone, the list is hidden until the page of sessions is rendered.
    toFocus.current?.focus();
    toFocus.current = null;
  });
  useLayoutEffect(() => {
    // The next key press acts within the session, and screen readers announce it.
    if (current !== null) document.getElementById('main')?.focus();
    document.title = current === null ? 'Coxswain' : `${current.slice(-12)} · Coxswain`;
  }, [current]);
  return (
    <div class={`app at-${place.page}`}>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the content
      </button>
      <header class="top">
        <a class="brand" href={hashOf({ page: 'sessions' })}>
          Coxswain
        </a>
        <nav aria-label="Console">
          {hasScope('run') && (
            <a class="button" href={hashOf({ page: 'new' })} aria-keyshortcuts="n">
              New session
            </a>
          )}
          <button type="button" class="quiet" onClick={() => setTheme(nextTheme)} aria-label={`Theme: ${theme}`}>
            {theme === 'system' ? '◐' : theme === 'light' ? '☀' : '☾'}
          </button>
          <button type="button" class="quiet" aria-label="Keys" onClick={() => setHelpOpen(true)}>
            ?
          </button>
        </nav>
      </header>
      <nav class="side" aria-label="Sessions">
        <SessionList feed={feed} current={current} now={now} />
      </nav>
      <main id="main" tabIndex={-1}>
        {place.page === 'session' && (
          <Boundary key={place.sessionId}>
            <SessionPage client={client} place={place} goTo={goTo} keys={keys.current} now={now} models={models} />
          </Boundary>
        )}
        {place.page === 'new' && (
          <NewSession client={client} sessions={feed.sessions} onStarted={(id) => goTo(sessionPlace(id))} />
        )}
        {place.page === 'sessions' && (
          <div class="empty welcome">
            <h1 class="visually-hidden">Sessions</h1>
            Choose a session
            {hasScope('run') && (
              <>
                , or <a href={hashOf({ page: 'new' })}>start one</a>
              </>
            )}
            .
          </div>
        )}
      </main>
      {helpOpen && (
        <Help
          onClose={() => setHelpOpen(false)}
          keysOn={keysOn}
          onKeys={(on) => {
            if (on) localStorage.removeItem(KEYS_OFF);
            else localStorage.setItem(KEYS_OFF, 'true');
            setKeysOn(on);
          }}
        />
      )}
    </div>
  );
}

function usePlace(): [Place, (place: Place) => void] {
  const [place, setPlace] = useState(() => placeOf(location.hash));
  useLayoutEffect(() => {
    const onHash = () => {
      // A fragment with a token is not a place: it is removed from the address.
      if (!bringsToken(location)) setPlace(placeOf(location.hash));
    };
    addEventListener('hashchange', onHash);
    return () => removeEventListener('hashchange', onHash);
  }, []);
  const goTo = useCallback((next: Place) => {
    const before = placeOf(location.hash);
    const isSlide =
      before.page === 'session' &&
      next.page === 'session' &&
      before.sessionId === next.sessionId &&
      before.tab === next.tab;
    // Sliding over a hundred records must not add a hundred entries to the browser history.
    if (isSlide) history.replaceState(null, '', hashOf(next));
    else history.pushState(null, '', hashOf(next));
    setPlace(next);
  }, []);
  return [place, goTo];
}

function useKeys(on: boolean, onKey: (key: ShortcutKey) => void): void {
  useLayoutEffect(() => {
    if (!on) return;
    const listen = (event: KeyboardEvent) => {
      // An open dialog handles its own keys.
      if (document.querySelector('dialog[open]')) return;
      const key = shortcutOf(event, takesLetters(document.activeElement));
      if (key === null) return;
      event.preventDefault();
      onKey(key);
    };
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, [on, onKey]);
}

const TICK_MS = 1_000;

/** The current time, updated every second, for relative times. */
function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const ticking = setInterval(() => {
      if (!document.hidden) setNow(Date.now());
    }, TICK_MS);
    return () => clearInterval(ticking);
  }, []);
  return now;
}
