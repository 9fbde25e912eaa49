/** Follows one session for as long as it is looked at. */
import type { JournalRecord, SessionStatus } from '@coxswain/protocol';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { SessionHandle } from '../browser-client.ts';
import { problemText } from '../page/outcome.tsx';
import { type Story, Storyteller, storyUpTo } from '../story/storyteller.ts';

/** What is known of a session. */
export interface FollowedSession {
  /** The state after the chosen record, or after the newest. */
  readonly story: Story;
  readonly records: readonly JournalRecord[];
  /** The newest record that has come; 0 before the first. */
  readonly newest: number;
  /** What a host says beside the journal: budgets, context, children. Null where none has answered. */
  readonly status: SessionStatus | null;
  /**
   * Until the records that there were when the page was opened have come: what is told so far is the past, and not what the session is
   * doing. `of` is null until the gateway has said how many there are. Null once they have come.
   */
  readonly catchingUp: { readonly n: number; readonly of: number | null } | null;
  /** Why nothing more comes; null while it does. */
  readonly problem: string | null;
  /** When the connection was lost, milliseconds since the epoch, while it is retried; null where it holds. */
  readonly lostAt: number | null;
  /** There is no such session. Should it be started, it is followed. */
  readonly isMissing: boolean;
}

const STATUS_AFTER_MS = 200;

/** Follows it. @param at the record up to which it is told; null for all, and what comes. */
export function useSession(session: SessionHandle, at: number | null): FollowedSession {
  const [live, setLive] = useState<Story>(() => new Storyteller().story);
  const [status, setStatus] = useState<SessionStatus | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [lostAt, setLostAt] = useState<number | null>(null);
  const [isMissing, setMissing] = useState(false);
  const [of, setOf] = useState<number | null>(null);
  const records = useRef<JournalRecord[]>([]);

  useEffect(() => {
    const leaving = new AbortController();
    const teller = new Storyteller();
    records.current = [];
    setOf(null);
    setLostAt(null);
    setMissing(false);
    // The first loss counts: each try that fails is another.
    const onConnection = (isConnected: boolean) => {
      if (!leaving.signal.aborted) setLostAt((since) => (isConnected ? null : (since ?? Date.now())));
    };
    // The browser knows of a lost network first. A gateway on this machine is still there: its next heartbeat says so.
    const onOffline = () => onConnection(false);
    window.addEventListener('offline', onOffline);
    // However much comes, the page is drawn once a frame.
    let frame = 0;
    const draw = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setLive(teller.story);
      });
    };
    let asked: ReturnType<typeof setTimeout> | undefined;
    const askStatus = () => {
      asked ??= setTimeout(async () => {
        asked = undefined;
        const answer = await session.wire.state().catch(() => null);
        if (!leaving.signal.aborted) setStatus((before) => answer ?? before);
      }, STATUS_AFTER_MS);
    };
    const follow = async () => {
      for await (const item of session.records({ deltas: true, signal: leaving.signal })) {
        if (item.connected !== undefined) {
          onConnection(item.connected);
          continue;
        }
        if (item.record) {
          if (records.current.length === 0) setMissing(false);
          records.current.push(item.record);
          teller.record(item.record);
          askStatus();
        } else if (item.delta) teller.delta(item.delta);
        draw();
      }
    };
    // One that is not there is waited for, which looks like one that says nothing.
    session.newest().then(
      (record) => {
        if (leaving.signal.aborted) return;
        setOf(record?.n ?? 0);
        if (record === null && records.current.length === 0) setMissing(true);
      },
      // What is wrong with reading it is told by following it; how far that has come is not known then.
      () => leaving.signal.aborted || setOf(0),
    );
    follow().then(
      () => leaving.signal.aborted || setProblem('the gateway closed the stream'),
      (error) => leaving.signal.aborted || setProblem(problemText(error)),
    );
    return () => {
      leaving.abort();
      window.removeEventListener('offline', onOffline);
      cancelAnimationFrame(frame);
      clearTimeout(asked);
    };
  }, [session]);

  const isPast = at !== null && at < live.n;
  // Told anew for each record that is chosen, and not for what comes meanwhile.
  const past = useMemo(() => (isPast ? storyUpTo(records.current, at) : null), [isPast, at]);
  const catchingUp = of === null || live.n < of ? { n: live.n, of } : null;
  return {
    story: past ?? live,
    records: records.current,
    newest: live.n,
    status,
    catchingUp,
    problem,
    lostAt,
    isMissing,
  };
}
