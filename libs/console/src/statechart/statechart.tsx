/**
 * Draws a state machine: nested states, the active state, the path so far and its last step. Its input is a chart and a
 * path; it is independent of sessions.
 */
import type { Chart } from '@coxswain/protocol';
import type { VNode } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { around, type ChartIndex, indexChart } from './chart.ts';
import { ChartDrawing } from './chart-drawing.tsx';
import type { ChartStep } from './chart-path.ts';
import { type ChartView, compoundPaths, viewOf } from './chart-view.ts';
import { layouter } from './elk-worker.ts';
import { type Drawing, layOut } from './layout.ts';

/** The properties of the viewer. */
export interface StatechartProps {
  readonly chart: Chart;
  /** The path of the innermost active state; null if it is unknown. */
  readonly active: string | null;
  /** The steps so far, the newest last. */
  readonly path: readonly ChartStep[];
  /** The newest event, with or without a transition. */
  readonly lastEvent: string | null;
  /** Moves through the whole path, of which `path` is the beginning; null if that is not possible. */
  readonly stepping: Stepping | null;
  /** Steps of this record and of later ones are derived: the most likely path. */
  readonly guessedFrom: number;
  /** Shows the record of a step; null if that is not possible. */
  readonly onGoTo: ((n: number) => void) | null;
}

/** A position on a path. */
export interface Stepping {
  /** The number of steps taken. */
  readonly position: number;
  readonly of: number;
  readonly onGoTo: (position: number) => void;
}

/** The number of steps in the list below the drawing. */
const LISTED_STEPS = 40;
const ZOOM_STEP = 1.25;

/** Shows a statechart with controls for zoom, expansion and steps. */
export function Statechart({ chart, active, path, lastEvent, stepping, guessedFrom, onGoTo }: StatechartProps): VNode {
  const index = useMemo(() => indexChart(chart), [chart]);
  const [all, setAll] = useState(false);
  const top = active === null ? '' : (around(index, active).at(-2) ?? '');
  const open = useMemo(() => openStates(index, all, top), [index, all, top]);
  const view = useMemo(() => viewOf(index, open), [index, open]);
  const { drawing, problem } = useDrawing(chart, view, open);
  const [zoom, setZoom] = useState(0.85);
  const box = useRef<HTMLElement>(null);
  const shown = drawing?.view === view ? drawing.drawing : (drawing?.drawing ?? null);
  const fit = () => {
    if (box.current && shown) setZoom(Math.min(1.5, Math.max(0.2, (box.current.clientWidth - 4) / shown.width)));
  };
  useEffect(() => {
    const lit = box.current?.querySelector('.node.active.leaf, .node.active.closed');
    if (lit && box.current) bringToMiddle(box.current, lit);
  }, [active, shown, zoom]);
  return (
    <div class="statechart">
      <div class="chart-bar">
        <p role="status">
          <strong>{active ?? 'no state'}</strong>
          {lastEvent !== null && <span class="faint"> after {lastEvent}</span>}
        </p>
        {stepping !== null && <Steps {...stepping} />}
        <div class="buttons">
          <button type="button" class="small" aria-pressed={all} onClick={() => setAll(!all)}>
            All states open
          </button>
          <button type="button" class="small" aria-label="Smaller" onClick={() => setZoom(zoom / ZOOM_STEP)}>
            −
          </button>
          <button type="button" class="small" aria-label="Larger" onClick={() => setZoom(zoom * ZOOM_STEP)}>
            +
          </button>
          <button type="button" class="small" onClick={fit}>
            Fit
          </button>
        </div>
      </div>
      {problem !== null && <p class="notice error">{problem}</p>}
      <section
        class="chart-box"
        ref={box}
        aria-label="Statechart"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable elements must be reachable by keyboard
        tabIndex={0}
      >
        {shown === null ? (
          problem === null && <p class="empty">Drawing the state machine …</p>
        ) : (
          <ChartDrawing index={index} open={open} drawing={shown} active={active} path={path} zoom={zoom} />
        )}
      </section>
      <Legend />
      <PathList path={path} guessedFrom={guessedFrom} onGoTo={onGoTo} />
    </div>
  );
}

function Steps({ position, of, onGoTo }: Stepping) {
  return (
    <div class="buttons">
      <button
        type="button"
        class="small"
        aria-label="Previous step"
        aria-keyshortcuts=","
        disabled={position === 0}
        onClick={() => onGoTo(position - 1)}
      >
        ‹
      </button>
      <span class="step-where faint">
        step {position} of {of}
      </span>
      <button
        type="button"
        class="small"
        aria-label="Next step"
        aria-keyshortcuts="."
        disabled={position >= of}
        onClick={() => onGoTo(position + 1)}
      >
        ›
      </button>
    </div>
  );
}

/** Scrolls the drawing only, and not the page around it. */
function bringToMiddle(box: Element, lit: Element): void {
  const [outer, inner] = [box.getBoundingClientRect(), lit.getBoundingClientRect()];
  box.scrollBy({
    left: inner.left + inner.width / 2 - outer.left - outer.width / 2,
    top: inner.top + inner.height / 2 - outer.top - outer.height / 2,
  });
}

function openStates(index: ChartIndex, all: boolean, top: string): ReadonlySet<string> {
  return new Set(all ? compoundPaths(index) : index.states.get(top)?.states.length ? [top] : []);
}

/** Caches the drawings of a chart by its expanded states: sliding over a journal needs the same few repeatedly. */
const drawings = new WeakMap<Chart, Map<string, Promise<Drawing>>>();

function laidOut(chart: Chart, view: ChartView, open: ReadonlySet<string>): Promise<Drawing> {
  const known = drawings.get(chart) ?? new Map<string, Promise<Drawing>>();
  drawings.set(chart, known);
  const key = [...open].sort().join(' ');
  const drawn = known.get(key) ?? layOut(layouter(), view);
  known.set(key, drawn);
  // A failed layout is tried again.
  drawn.catch(() => known.delete(key));
  return drawn;
}

function useDrawing(
  chart: Chart,
  view: ChartView,
  open: ReadonlySet<string>,
): {
  readonly drawing: { readonly view: ChartView; readonly drawing: Drawing } | null;
  readonly problem: string | null;
} {
  const [drawing, setDrawing] = useState<{ view: ChartView; drawing: Drawing } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let left = false;
    laidOut(chart, view, open).then(
      (drawn) => {
        if (left) return;
        setDrawing({ view, drawing: drawn });
        setProblem(null);
      },
      (error: Error) => left || setProblem(`The state machine cannot be drawn: ${error.message}`),
    );
    return () => {
      left = true;
    };
  }, [chart, view, open]);
  return { drawing, problem };
}

function Legend() {
  return (
    <p class="legend faint" aria-hidden="true">
      <span class="key active" /> current <span class="key visited" /> visited <span class="key last" /> last step{' '}
      <span class="key seam" /> seam
    </p>
  );
}

/** The latest steps as a list, for people who cannot see the drawing. */
function PathList({
  path,
  guessedFrom,
  onGoTo,
}: {
  readonly path: readonly ChartStep[];
  readonly guessedFrom: number;
  readonly onGoTo: ((n: number) => void) | null;
}) {
  const steps = path.slice(-LISTED_STEPS).reverse();
  return (
    <section class="path" aria-label="Path so far">
      <h2>
        Path so far <span class="count">{path.length}</span>
        {(path.at(-1)?.n ?? 0) >= guessedFrom && <span class="faint"> the most likely one</span>}
      </h2>
      <ol>
        {steps.map(({ from, to, event, atOnce, n }, at) => (
          <li key={path.length - at}>
            {onGoTo === null ? (
              <span class="faint">{n}</span>
            ) : (
              <button type="button" class="record-link" aria-label={`Show record ${n}`} onClick={() => onGoTo(n)}>
                {n}
              </button>
            )}{' '}
            <span class="visually-hidden">from {from} to </span>
            <code>{to}</code>{' '}
            <span class="faint">
              {event === null ? 'by a transition outside the chart' : `${event}${atOnce ? ', at once' : ''}`}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}
