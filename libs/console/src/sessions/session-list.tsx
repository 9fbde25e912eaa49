/** The list of sessions, the most recently changed first. */
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { WireListedSession } from '../browser-client.ts';
import { hashOf, sessionPlace } from '../page/place.ts';
import { agoText, shortId, spentText } from '../page/wording.ts';
import { categoryOf, StateBadge } from '../session/state-badge.tsx';
import type { SessionsFeed } from './use-sessions.ts';

const FILTERS = { all: 'All', waiting: 'To decide', running: 'Running', ended: 'Ended' } as const;
type Filter = keyof typeof FILTERS;

/** The list. @param current The id of the shown session. */
export function SessionList({
  feed,
  current,
  now,
}: {
  readonly feed: SessionsFeed;
  readonly current: string | null;
  readonly now: number;
}): VNode {
  const [filter, setFilter] = useState<Filter>('all');
  const [sought, setSought] = useState('');
  const shown = feed.sessions.filter((listed) => isWanted(listed, filter, sought.trim().toLowerCase()));
  return (
    <div class="sessions">
      <div class="list-tools">
        <label class="visually-hidden" for="sought">
          Find a session by its id, persona or model
        </label>
        <input
          id="sought"
          type="search"
          placeholder="Find"
          value={sought}
          onInput={({ currentTarget }) => setSought(currentTarget.value)}
        />
        <label class="visually-hidden" for="filter">
          Which sessions
        </label>
        <select id="filter" value={filter} onChange={({ currentTarget }) => setFilter(currentTarget.value as Filter)}>
          {Object.entries(FILTERS).map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </div>
      {feed.problem !== null && <p class="notice error">{feed.problem}</p>}
      {feed.loaded && shown.length === 0 && (
        <p class="empty">{feed.sessions.length === 0 ? 'No sessions yet.' : 'No matching sessions.'}</p>
      )}
      <ul class="session-list" aria-label="Sessions">
        {shown.map((listed) => (
          <SessionRow key={listed.session_id} listed={listed} isCurrent={listed.session_id === current} now={now} />
        ))}
      </ul>
      {feed.more && (
        <button type="button" class="quiet" onClick={feed.showMore}>
          Show more
        </button>
      )}
    </div>
  );
}

function SessionRow({
  listed,
  isCurrent,
  now,
}: {
  readonly listed: WireListedSession;
  readonly isCurrent: boolean;
  readonly now: number;
}) {
  const { session_id: id, state, stop_reason, at, details } = listed;
  return (
    <li>
      <a class="session-row" href={hashOf(sessionPlace(id))} aria-current={isCurrent ? 'page' : undefined}>
        <span class="row-line">
          <strong title={id}>{details?.persona ?? shortId(id)}</strong>
          <span class="faint">{agoText(at, now)}</span>
        </span>
        <span class="row-line">
          <StateBadge state={state} stopReason={stop_reason} />
          <span class="cost">
            {details ? spentText(details.cost_usd, details.usage.input_tokens + details.usage.output_tokens) : ''}
          </span>
        </span>
        <span class="faint row-line">
          <span class="cut">{details?.model ?? ''}</span>
          <span class="row-id">{details?.persona ? shortId(id) : ''}</span>
        </span>
      </a>
    </li>
  );
}

function isWanted(
  { session_id, state, stop_reason, details }: WireListedSession,
  filter: Filter,
  sought: string,
): boolean {
  const mood = categoryOf(state, stop_reason);
  const name = typeof state === 'string' ? state : '';
  const ended = name === 'stopped' || name === 'failed';
  if (filter === 'waiting' && mood !== 'waiting') return false;
  if (filter === 'running' && (ended || mood === 'failed')) return false;
  if (filter === 'ended' && !ended) return false;
  return [session_id, details?.persona, details?.model].some((text) => text?.toLowerCase().includes(sought));
}
