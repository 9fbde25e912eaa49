/** The header of a session: its settings and cost, and actions on the whole session. */
import type { SessionStatus } from '@coxswain/protocol';
import type { VNode } from 'preact';
import { hasEnded, type SessionHandle, topState } from '../browser-client.ts';
import type { RunAction } from '../page/outcome.tsx';
import { hashOf, sessionPlace } from '../page/place.ts';
import { countText, shortId, spentText } from '../page/wording.ts';
import type { SessionView } from '../view/session-view.ts';
import { StateBadge } from './state-badge.tsx';

/** The header. @param acting Null if the past is shown, or the token has no scope for the actions. */
export function SessionHead({
  session,
  view,
  status,
  staleReason,
  acting,
  runAction,
}: {
  readonly session: SessionHandle;
  readonly view: SessionView;
  readonly status: SessionStatus | null;
  /** Why the shown state is not current, such as `reconnecting`; null if it is current, or that of a past record. */
  readonly staleReason: string | null;
  readonly acting: SessionHandle | null;
  readonly runAction: RunAction;
}): VNode {
  const { state, persona, model, turn, usage, origin } = view;
  const run = usage.runs.at(-1);
  const ended = state !== null && hasEnded(state);
  const isSuspended = state !== null && topState(state) === 'suspended';
  const parent = status?.parent ?? null;
  return (
    <header class="session-head">
      <a class="back" href={hashOf({ page: 'sessions' })} aria-label="All sessions">
        ‹
      </a>
      <div class="session-title">
        <h1>
          {persona ?? 'Session'} <code title={session.id}>{shortId(session.id)}</code>
        </h1>
        <p class="faint facts">
          <span class="cut" title={model ?? undefined}>
            {model ?? 'no model yet'}
          </span>
          <span>
            turn {turn} · {countText(usage.usage.inputTokens)} in, {countText(usage.usage.outputTokens)} out ·{' '}
            <span class="cost">{spentText(usage.costUsd, usage.usage.inputTokens + usage.usage.outputTokens)}</span>
          </span>
          {parent !== null && (
            <span>
              child of <a href={hashOf(sessionPlace(parent.session))}>{shortId(parent.session)}</a>
            </span>
          )}
          {origin !== null && (
            <span>
              from record {origin.n} of <a href={hashOf(sessionPlace(origin.session))}>{shortId(origin.session)}</a>
            </span>
          )}
        </p>
      </div>
      <div class="session-state" aria-live="polite">
        {staleReason !== null && <span class="badge idle">{staleReason}</span>}
        {staleReason === null && state !== null && <StateBadge state={state} stopReason={run?.stopReason ?? null} />}
      </div>
      {acting && state !== null && !ended && (
        <div class="buttons">
          {isSuspended ? (
            <button
              type="button"
              onClick={() => void runAction('the session continues', () => acting.resume({ wait: 'accepted' }))}
            >
              Resume
            </button>
          ) : (
            <button
              type="button"
              onClick={() =>
                void runAction('it is suspended at the end of the current turn', () =>
                  acting.suspend({}, { wait: 'accepted' }),
                )
              }
            >
              Suspend
            </button>
          )}
          <button
            type="button"
            class="danger"
            onClick={() => void runAction('the run is cancelled', () => acting.cancel(undefined, { wait: 'accepted' }))}
          >
            Cancel run
          </button>
        </div>
      )}
    </header>
  );
}
