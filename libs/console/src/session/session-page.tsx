/** The page of one session: its events, and actions on it. */

import type { VNode } from 'preact';
import { useCallback, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ForkOptions } from '../browser-client.ts';
import { hasEnded, type SessionHandle, type SessionsClient } from '../browser-client.ts';
import { Boundary } from '../page/boundary.tsx';
import { OutcomeLine, problemText, useOutcome } from '../page/outcome.tsx';
import { hashOf, type Place, sessionPlace, TABS, type Tab } from '../page/place.ts';
import { SameCommand } from '../page/same-command.ts';
import type { ShortcutKey } from '../page/shortcuts.ts';
import { clockText } from '../page/wording.ts';
import { useScopeCheck } from '../sign-in/scopes.ts';
import { stateName } from '../view/state-name.ts';
import { Approvals } from './approvals.tsx';
import { ForkDialog } from './fork-dialog.tsx';
import { PendingList } from './pending-list.tsx';
import { SessionHead } from './session-head.tsx';
import { sliderStep } from './slider-step.ts';
import { StatechartView, type StepKeys } from './statechart-view.tsx';
import { STEERING_BOX, SteeringBox, useDraft } from './steering-box.tsx';
import { TimeSlider } from './time-slider.tsx';
import { Timeline } from './timeline.tsx';
import { Transcript } from './transcript.tsx';
import { TreeView } from './tree-view.tsx';
import { UsageView } from './usage-view.tsx';
import { useSession } from './use-session.ts';

type SessionPlace = Extract<Place, { page: 'session' }>;

const TAB_NAMES: Readonly<Record<Tab, string>> = {
  transcript: 'Transcript',
  timeline: 'Timeline',
  statechart: 'Statechart',
  tree: 'Tree',
  usage: 'Usage',
};

/** The state in which a model response is awaited. */
const ANSWERING = 'assistant_streaming.streaming';

/** Passes shortcuts to the shown session. */
export interface SessionKeys {
  onKey: ((key: ShortcutKey) => void) | null;
}

/** The page of a session. */
export function SessionPage({
  client,
  place,
  goTo,
  keys,
  now,
  models,
}: {
  readonly client: SessionsClient;
  readonly place: SessionPlace;
  readonly goTo: (place: Place) => void;
  readonly keys: SessionKeys;
  readonly now: number;
  /** Models of other sessions, as choices for a fork. */
  readonly models: readonly string[];
}): VNode {
  const { sessionId, tab, at } = place;
  const session = useMemo(() => client.session(sessionId), [client, sessionId]);
  const { view, records, newest, status, catchingUp, problem, lostAt, isMissing } = useSession(session, at);
  const { outcome, runAction } = useOutcome();
  const hasScope = useScopeCheck();
  const mayRun = hasScope('run');
  /** The record for which the fork dialog is open; null if it is closed. */
  const [forkAt, setForkAt] = useState<number | null>(null);
  const [sameFork] = useState(() => new SameCommand());
  const draft = useDraft();
  const stepKeys = useRef<StepKeys>({ onStep: null }).current;
  const isLive = at === null || at >= newest;
  // While loading, the records show the past: actions and forks must wait.
  const isNow = isLive && catchingUp === null;
  const ended = view.state !== null && hasEnded(view.state);
  const setAt = useCallback((next: number | null) => goTo({ ...place, at: next }), [goTo, place]);
  const setTab = useCallback((next: Tab) => goTo({ ...place, tab: next }), [goTo, place]);

  const askToFork = useCallback(() => {
    if (newest === 0 || !mayRun || (isLive && !isNow)) return;
    setForkAt(isLive ? newest : (at ?? newest));
  }, [newest, mayRun, isLive, isNow, at]);
  const closeFork = useCallback(() => setForkAt(null), []);
  const fork = async (from: number, changes: ForkOptions['changes']) => {
    let rejection: string | null = null;
    await runAction(`forked at record ${from}`, async () => {
      try {
        const forked = await sameFork.send(JSON.stringify([from, changes]), (ids) =>
          session.fork({ ...ids, at: from, changes, wait: 'accepted' }),
        );
        setForkAt(null);
        goTo(sessionPlace(forked.id));
      } catch (error) {
        rejection = problemText(error);
        throw error;
      }
    });
    return rejection;
  };

  const showApproval = useCallback((callId: string) => {
    const card = document.getElementById(`approval-${callId}`);
    card?.scrollIntoView({ block: 'nearest' });
    card?.querySelector<HTMLElement>('button.primary')?.focus();
  }, []);

  // Before the next key press: `]` followed at once by `f` forks at the record that was selected.
  useLayoutEffect(() => {
    keys.onKey = (key) => {
      const shown = TABS[Number(key) - 1];
      if (shown) setTab(shown);
      if (key === '[') setAt(sliderStep(isLive ? null : at, newest, -1));
      if (key === ']') setAt(sliderStep(isLive ? null : at, newest, 1));
      if (key === ',') stepKeys.onStep?.(-1);
      if (key === '.') stepKeys.onStep?.(1);
      if (key === 'l') setAt(null);
      if (key === 'f') askToFork();
      if (key === 's') document.getElementById(STEERING_BOX)?.focus();
      if (key === 'a' && view.approvals[0]) showApproval(view.approvals[0].callId);
    };
    return () => {
      keys.onKey = null;
    };
  }, [keys, stepKeys, setTab, setAt, isLive, at, newest, askToFork, view.approvals, showApproval]);

  if (isMissing)
    return (
      <p class="empty" role="alert">
        There is no session {sessionId}. It appears here once it is started.{' '}
        <a href={hashOf({ page: 'sessions' })}>All sessions</a>
      </p>
    );
  // A stream that ended with a problem, such as the deletion of the session, is not opened again.
  const offline = problem !== null ? 'disconnected' : lostAt !== null ? 'reconnecting' : null;
  const acting: SessionHandle | null = isNow ? session : null;
  const controls = {
    cancelCall:
      acting && hasScope('steer')
        ? (callId: string) => void runAction('the call is cancelled', () => cancelCall(session, callId))
        : null,
    showApproval,
  };
  return (
    <div class="session">
      <SessionHead
        session={session}
        view={view}
        status={status}
        staleReason={isLive ? (offline ?? (isNow ? null : 'catching up')) : null}
        acting={mayRun ? acting : null}
        runAction={runAction}
      />
      <TimeSlider
        at={isLive ? null : at}
        newest={newest}
        offline={offline}
        catchingUp={catchingUp}
        time={view.at}
        onChange={setAt}
        onFork={mayRun && (isNow || !isLive) ? askToFork : null}
      />
      {forkAt !== null && (
        <ForkDialog
          key={forkAt}
          n={forkAt}
          record={records[forkAt - 1]}
          model={view.model}
          models={models}
          onFork={(changes) => fork(forkAt, changes)}
          onClose={closeFork}
        />
      )}
      <div class="session-notices">
        {problem !== null && (
          <p class="notice error" role="alert">
            {problem} <a href={hashOf({ page: 'sessions' })}>All sessions</a>
          </p>
        )}
        {problem === null && lostAt !== null && (
          <p class="notice error" role="alert">
            Disconnected from the gateway since {clockText(new Date(lostAt).toISOString())}. Reconnecting; the page
            shows the state of that time.
          </p>
        )}
        {at !== null && at > newest && catchingUp === null && (
          <p class="notice warning" role="status">
            There is no record {at}: the newest record is {newest}, and the page shows the current state.
          </p>
        )}
      </div>
      <Tabs tab={tab} onTab={setTab} />
      <div class="session-body">
        <div class="session-main" id="session-view" role="tabpanel" aria-labelledby={`tab-${tab}`}>
          <Boundary key={tab}>
            {tab === 'transcript' && catchingUp?.n === 0 && <p class="empty">Loading the transcript …</p>}
            {tab === 'transcript' && catchingUp?.n !== 0 && (
              <Transcript
                key={sessionId}
                entries={view.entries}
                isLive={isNow}
                isAnswering={isNow && view.state !== null && stateName(view.state) === ANSWERING}
                controls={controls}
              />
            )}
            {tab === 'timeline' && <Timeline moments={view.moments} onGoTo={setAt} />}
            {tab === 'statechart' && (
              <StatechartView
                session={session}
                view={view}
                records={records}
                newest={newest}
                keys={stepKeys}
                onGoTo={setAt}
              />
            )}
            {tab === 'tree' && <TreeView session={session} hasEnded={ended} />}
            {tab === 'usage' && <UsageView usage={view.usage} status={isLive ? status : null} />}
          </Boundary>
        </div>
        <aside class="session-side" aria-label="Approvals and queued messages">
          <Approvals
            approvals={view.approvals}
            session={hasScope('approve') ? acting : null}
            runAction={runAction}
            now={now}
          />
          <PendingList
            pending={view.pending}
            session={hasScope('steer') ? acting : null}
            runAction={runAction}
            now={now}
          />
        </aside>
      </div>
      <OutcomeLine outcome={outcome} />
      {isNow && hasScope(ended ? 'run' : 'steer') && (
        <SteeringBox session={session} hasEnded={ended} draft={draft} runAction={runAction} />
      )}
      {!isLive && (
        <p class="past-note">
          State of the session after record {at}.{' '}
          <button type="button" class="small" onClick={() => setAt(null)}>
            Back to live
          </button>
        </p>
      )}
    </div>
  );
}

/** Arrow keys move between tabs, as in other tab lists. */
function Tabs({ tab, onTab }: { readonly tab: Tab; readonly onTab: (tab: Tab) => void }) {
  const move = (by: number) => {
    const next = TABS[(TABS.indexOf(tab) + by + TABS.length) % TABS.length];
    if (!next) return;
    onTab(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label="Views">
      {TABS.map((one, index) => (
        <button
          key={one}
          id={`tab-${one}`}
          type="button"
          role="tab"
          aria-selected={one === tab}
          aria-controls="session-view"
          aria-keyshortcuts={String(index + 1)}
          tabIndex={one === tab ? 0 : -1}
          onClick={() => onTab(one)}
          onKeyDown={({ key }) => {
            if (key === 'ArrowRight') move(1);
            if (key === 'ArrowLeft') move(-1);
          }}
        >
          {TAB_NAMES[one]}
        </button>
      ))}
    </div>
  );
}

/** Cancels a call. @throws Error if that did not stop it: the page shows the reason. */
async function cancelCall(session: SessionHandle, callId: string): Promise<void> {
  const { outcome } = await session.cancelCall(callId);
  if (outcome === 'not_found') throw new Error('the call has already ended');
  if (outcome === 'timeout')
    throw new Error('the tool did not confirm that it stopped; the session continues without it');
}
