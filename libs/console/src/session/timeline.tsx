/** Seams, hooks, calls and decisions, one line each. */
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { clockText, countText } from '../page/wording.ts';
import type { Moment, MomentKind } from '../view/moments.ts';

const KINDS: readonly (readonly [MomentKind, string])[] = [
  ['state', 'States'],
  ['seam', 'Seams'],
  ['hook', 'Hooks'],
  ['call', 'Calls'],
  ['decision', 'Decisions'],
  ['command', 'Commands'],
];
const SHOWN = 500;

/** The timeline, the newest line last. */
export function Timeline({
  moments,
  onGoTo,
}: {
  readonly moments: readonly Moment[];
  readonly onGoTo: (n: number) => void;
}): VNode {
  const [hidden, setHidden] = useState<ReadonlySet<MomentKind>>(new Set());
  const [shown, setShown] = useState(SHOWN);
  const wanted = moments.filter(({ kind }) => !hidden.has(kind));
  const left = Math.max(0, wanted.length - shown);
  return (
    <div class="timeline-view">
      <fieldset class="filters">
        <legend class="visually-hidden">Shown events</legend>
        {KINDS.map(([kind, name]) => (
          <label class="check" key={kind}>
            <input
              type="checkbox"
              checked={!hidden.has(kind)}
              onChange={() => {
                const next = new Set(hidden);
                if (!next.delete(kind)) next.add(kind);
                setHidden(next);
              }}
            />{' '}
            {name}
          </label>
        ))}
      </fieldset>
      {left > 0 && (
        <button type="button" class="quiet" onClick={() => setShown(shown + 4 * SHOWN)}>
          Show earlier lines ({countText(left)})
        </button>
      )}
      <ol class="timeline" aria-label="Timeline">
        {wanted.slice(left).map((moment) => (
          <li key={moment.key} class={`moment about-${moment.kind}${moment.marked ? ' marked' : ''}`}>
            <button
              type="button"
              class="record-link"
              aria-label={`Show record ${moment.n}`}
              onClick={() => onGoTo(moment.n)}
            >
              {moment.n}
            </button>
            <time dateTime={moment.at}>{clockText(moment.at)}</time>
            <span class="moment-kind">{moment.kind}</span>
            <span class="moment-what">
              <strong>{moment.title}</strong> {moment.detail}
            </span>
          </li>
        ))}
      </ol>
    </div>
  );
}
