/** Follows one session while it is shown. */
import type { JournalRecord, SessionStatus } from '@coxswain/protocol';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { SessionHandle } from '../browser-client.ts';
import { onNextFrame } from '../page/next-frame.ts';
import { problemText } from '../page/outcome.tsx';
import { type SessionView, SessionViewBuilder, viewUpTo } from '../view/session-view.ts';
import { queryInTurn } from './query-in-turn.ts';

/** The known state of a session. */
export interface FollowedSession {
  /** The state after the selected record, or after the newest. */
  readonly view: SessionView;
  readonly records: readonly JournalRecord[];
  /** The newest record that has arrived; 0 before the first. */
  readonly newest: number;
  /** The state from a host, for what the journal does not have: budgets, context, children. Null before a response. */
  readonly status: SessionStatus | null;
  /**
   * The progress of loading the records that existed when the page opened; until then the view shows the past. `of` is
   * null until the gateway has reported their number. Null when all have arrived.
   */
  readonly catchingUp: { readonly n: number; readonly of: number | null } | null;
  /** Why no more records arrive; null while they do. */
  readonly problem: string | null;
  /** When the connection was lost, milliseconds since 1970; null while it is connected. */
  readonly lostAt: number | null;
  /** The session does not exist. If it is started, it is followed. */
  readonly isMissing: boolean;
}

const STATUS_AFTER_MS = 200;

/** Follows a session. @param at The last record to show; null: all records, and new ones. */
export function useSession(session: SessionHandle, at: number | null): FollowedSession {
  const [live, setLive] = useState<SessionView>(() => new SessionViewBuilder().view);
  const [status, setStatus] = useState<SessionStatus | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [lostAt, setLostAt] = useState<number | null>(null);
  const [isMissing, setMissing] = useState(false);
  const [of, setOf] = useState<number | null>(null);
  const records = useRef<JournalRecord[]>([]);

  useEffect(() => {
    const leaving = new AbortController();
    const builder = new SessionViewBuilder();
    records.current = [];
    setOf(null);
    setLostAt(null);
    setMissing(false);
    // The first loss counts: each failed attempt reports another.
    const onConnection = (isConnected: boolean) => {
      if (!leaving.signal.aborted) setLostAt((since) => (isConnected ? null : (since ?? Date.now())));
    };
    // The browser detects a lost network first. A gateway on this machine stays reachable: its next heartbeat reports
    // that.
    const onOffline = () => onConnection(false);
    window.addEventListener('offline', onOffline);
    // Rendered once per frame, however many records arrive.
    let cancelFrame: (() => void) | null = null;
    const draw = () => {
      cancelFrame ??= onNextFrame(() => {
        cancelFrame = null;
        setLive(builder.view);
      });
    };
    // After a failed query, the last status stays.
    const statusQuery = queryInTurn(async () => {
      const answer = await session.wire.state().catch(() => null);
      if (answer !== null && !leaving.signal.aborted) setStatus(answer);
    }, STATUS_AFTER_MS);
    const follow = async () => {
      for await (const item of session.records({ deltas: true, signal: leaving.signal })) {
        if (item.connected !== undefined) {
          onConnection(item.connected);
          continue;
        }
        if (item.record) {
          if (records.current.length === 0) setMissing(false);
          records.current.push(item.record);
          builder.record(item.record);
          statusQuery.request();
        } else if (item.delta) builder.delta(item.delta);
        draw();
      }
    };
    // A missing session is waited for, which looks like a session without events.
    session.newest().then(
      (record) => {
        if (leaving.signal.aborted) return;
        setOf(record?.n ?? 0);
        if (record === null && records.current.length === 0) setMissing(true);
      },
      // Following the session reports a read error; the progress is then unknown.
      () => leaving.signal.aborted || setOf(0),
    );
    follow().then(
      () => leaving.signal.aborted || setProblem('the gateway closed the stream'),
      (error) => leaving.signal.aborted || setProblem(problemText(error)),
    );
    return () => {
      leaving.abort();
      window.removeEventListener('offline', onOffline);
      cancelFrame?.();
      statusQuery.stop();
    };
  }, [session]);

  const isPast = at !== null && at < live.n;
  // Computed for each selected record, and not for records that arrive meanwhile.
  const past = useMemo(() => (isPast ? viewUpTo(records.current, at) : null), [isPast, at]);
  const catchingUp = of === null || live.n < of ? { n: live.n, of } : null;
  return {
    view: past ?? live,
    records: records.current,
    newest: live.n,
    status,
    catchingUp,
    problem,
    lostAt,
    isMissing,
  };
}
