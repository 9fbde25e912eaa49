/** The list of sessions, updated while it is shown. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { SessionsClient, WireListedSession } from '../browser-client.ts';
import { problemText } from '../page/outcome.tsx';

/** The list as it was read last. */
export interface SessionsFeed {
  readonly sessions: readonly WireListedSession[];
  readonly loaded: boolean;
  /** Whether there are older sessions. */
  readonly more: boolean;
  readonly showMore: () => void;
  readonly problem: string | null;
}

const READ_AGAIN_MS = 2_000;
/** The interval of reads while the page is hidden. */
const HIDDEN_MS = 30_000;
/** The pause before the next read is at least this many times the duration of the last one. */
const REST = 5;
/** The maximum number of host queries per read. */
const ASKED = 16;
const PAGE = 50;
/** The maximum page size of a gateway. */
const AT_ONCE = 500;
/** The maximum length of the list. An older session is found by its id in the address, or with `cox session list`. */
const SESSIONS_MAX = 5_000;

/** Reads the list periodically. @param onRefused Called if the token is no longer valid. */
export function useSessions(client: SessionsClient, onRefused: () => void): SessionsFeed {
  const [limit, setLimit] = useState(PAGE);
  const [read, setRead] = useState<Pick<SessionsFeed, 'sessions' | 'more' | 'problem' | 'loaded'>>({
    sessions: [],
    more: false,
    problem: null,
    loaded: false,
  });
  // A longer list keeps the details of the sessions that it has already shown. Another token may belong to another tenant.
  const shown = useRef({ client, sessions: [] as readonly WireListedSession[] });
  useEffect(() => {
    if (shown.current.client !== client) shown.current = { client, sessions: [] };
    let left = false;
    let waiting: ReturnType<typeof setTimeout> | undefined;
    const readAgain = async () => {
      clearTimeout(waiting);
      const begun = performance.now();
      try {
        const { sessions, more } = await readSessions(client.wire, limit, shown.current.sessions.length === 0);
        const known = await withDetails(client, sessions, shown.current.sessions);
        if (left) return;
        shown.current = { client, sessions: known };
        setRead({
          sessions: known,
          more: more && limit < SESSIONS_MAX,
          problem: null,
          loaded: true,
        });
      } catch (error) {
        if (left) return;
        if ((error as { readonly code?: unknown }).code === 'unauthorized') return onRefused();
        setRead((before) => ({ ...before, problem: problemText(error) }));
      }
      // A list that takes long is read less often.
      const soon = Math.max(READ_AGAIN_MS, REST * (performance.now() - begun));
      waiting = setTimeout(readAgain, document.hidden ? HIDDEN_MS : soon);
    };
    const onSeen = () => {
      if (!document.hidden) void readAgain();
    };
    document.addEventListener('visibilitychange', onSeen);
    void readAgain();
    return () => {
      left = true;
      clearTimeout(waiting);
      document.removeEventListener('visibilitychange', onSeen);
    };
  }, [client, limit, onRefused]);
  return { ...read, showMore: () => setLimit(Math.min(SESSIONS_MAX, limit * 2)) };
}

/**
 * Reads the newest sessions, page by page. A session that changes meanwhile may occur twice: the first occurrence
 * counts.
 */
export async function readSessions(
  wire: Pick<SessionsClient['wire'], 'listSessions'>,
  wanted: number,
  details: boolean,
): Promise<{ readonly sessions: readonly WireListedSession[]; readonly more: boolean }> {
  const found = new Map<string, WireListedSession>();
  let cursor: string | undefined;
  do {
    const limit = Math.min(AT_ONCE, wanted - found.size);
    // For a long list, details are requested later, for a few sessions at a time.
    const page = await wire.listSessions({
      details: details && cursor === undefined && limit <= PAGE,
      limit,
      cursor,
    });
    for (const session of page.sessions) if (!found.has(session.session_id)) found.set(session.session_id, session);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && found.size < wanted);
  return { sessions: [...found.values()], more: cursor !== undefined };
}

/** Queries hosts for sessions that have changed or have no details yet. */
async function withDetails(
  client: SessionsClient,
  listed: readonly WireListedSession[],
  known: readonly WireListedSession[],
): Promise<WireListedSession[]> {
  const before = new Map(known.map((session) => [session.session_id, session]));
  let asked = 0;
  return Promise.all(
    listed.map(async (session) => {
      if (session.details !== undefined) return session;
      const old = before.get(session.session_id);
      if (old?.n === session.n && old.details) return old;
      if (session.unreadable !== undefined) return { ...session, details: null };
      asked += 1;
      // The others keep their details, and are queried by a later read.
      if (asked > ASKED) return old ?? { ...session, details: null };
      return detailed(client, session, old);
    }),
  );
}

async function detailed(
  client: SessionsClient,
  session: WireListedSession,
  old: WireListedSession | undefined,
): Promise<WireListedSession> {
  try {
    const status = await client.session(session.session_id).wire.state();
    const { persona, model, turn, cost_usd, usage, parent, approvals, stop_reason } = status;
    const details = { persona, model, turn, cost_usd, usage, parent, approvals: approvals.length };
    return { ...session, stop_reason: session.stop_reason ?? stop_reason, details };
  } catch {
    // No host responded: the session is listed without new details.
    return { ...session, details: old?.details ?? null };
  }
}
