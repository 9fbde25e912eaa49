/** A slider over the records of the journal. */
import type { VNode } from 'preact';
import { clockText } from '../page/wording.ts';
import { sliderStep } from './slider-step.ts';

/** A slider with buttons for single steps, the live view and a fork. */
export function TimeSlider({
  at,
  newest,
  offline,
  catchingUp,
  time,
  onChange,
  onFork,
}: {
  /** The shown record; null for the live view. */
  readonly at: number | null;
  readonly newest: number;
  /** Why no new records arrive; null while they do. */
  readonly offline: 'reconnecting' | 'disconnected' | null;
  /** The progress of loading the past records; null when all have arrived. */
  readonly catchingUp: { readonly n: number; readonly of: number | null } | null;
  readonly time: string;
  readonly onChange: (at: number | null) => void;
  /** Null if forking is not possible. */
  readonly onFork: (() => void) | null;
}): VNode {
  const shown = at === null ? newest : Math.min(at, newest);
  const what = at === null ? nowText(newest, offline, catchingUp) : `record ${shown} of ${newest}`;
  return (
    <div class={at === null ? 'slider' : 'slider past'}>
      <button
        type="button"
        class="small"
        aria-label="Previous record"
        disabled={shown <= 1}
        onClick={() => onChange(sliderStep(at, newest, -1))}
      >
        ‹
      </button>
      <input
        type="range"
        min={1}
        max={Math.max(1, newest)}
        value={shown}
        aria-label="Shown record"
        aria-valuetext={what}
        onInput={({ currentTarget }) => {
          const chosen = Number(currentTarget.value);
          onChange(chosen >= newest ? null : chosen);
        }}
      />
      <button
        type="button"
        class="small"
        aria-label="Next record"
        disabled={at === null}
        onClick={() => onChange(sliderStep(at, newest, 1))}
      >
        ›
      </button>
      <span class="slider-where">
        {what} {time !== '' && <time dateTime={time}>{clockText(time)}</time>}
      </span>
      <button type="button" class="small" disabled={at === null} onClick={() => onChange(null)}>
        Live
      </button>
      {onFork && (
        <button type="button" class="small" disabled={newest === 0} onClick={onFork}>
          Fork from here
        </button>
      )}
    </div>
  );
}

function nowText(
  newest: number,
  offline: string | null,
  catchingUp: { readonly n: number; readonly of: number | null } | null,
): string {
  if (offline !== null) return `${offline}, record ${newest}`;
  if (catchingUp === null) return `live, record ${newest}`;
  return catchingUp.of === null ? 'catching up …' : `catching up, record ${catchingUp.n} of ${catchingUp.of}`;
}
