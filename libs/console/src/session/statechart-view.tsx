/** The state machine of a session, as of the shown record. */
import type { Chart, JournalRecord } from '@coxswain/protocol';
import type { VNode } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { SessionHandle } from '../browser-client.ts';
import { problemText } from '../page/outcome.tsx';
import { entered, indexChart } from '../statechart/chart.ts';
import { type ChartStep, pathThrough } from '../statechart/chart-path.ts';
import { Statechart } from '../statechart/statechart.tsx';
import { momentAt, positionAfter, recordAt } from '../statechart/step-cursor.ts';
import { chartEvent } from '../view/chart-event.ts';
import type { SessionView } from '../view/session-view.ts';
import { stateName } from '../view/state-name.ts';
import type { ReceivedSteps } from './inspected-steps.ts';
import { useInspectedSteps } from './use-inspected-steps.ts';

/** Passes the keys for steps to the shown state machine. */
export interface StepKeys {
  onStep: ((by: 1 | -1) => void) | null;
}

/** The view of the state machine. */
export function StatechartView({
  session,
  view,
  records,
  newest,
  keys,
  onGoTo,
}: {
  readonly session: SessionHandle;
  readonly view: SessionView;
  readonly records: readonly JournalRecord[];
  /** The newest record that has arrived. */
  readonly newest: number;
  readonly keys: StepKeys;
  /** Shows a record; null shows the live view. */
  readonly onGoTo: (n: number | null) => void;
}): VNode {
  const [chart, setChart] = useState<Chart | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let left = false;
    session.statechart().then(
      ({ machine }) => left || setChart(knownChart(machine)),
      (error: unknown) => left || setProblem(problemText(error)),
    );
    return () => {
      left = true;
    };
  }, [session]);
  const received = useInspectedSteps(session.id);
  const path = useMemo(
    () => (chart === null ? [] : pathOf(chart, records, newest, received)),
    [chart, records, newest, received],
  );
  const [cursor, setCursor] = useState<number | null>(null);
  const end = positionAfter(path, view.n);
  // If the user has selected another record meanwhile, that record is shown.
  const isStepping = cursor !== null && cursor < path.length && recordAt(path, cursor) === view.n;
  const position = isStepping ? cursor : end;
  const shownPath = useMemo(() => path.slice(0, position), [path, position]);
  // Key presses may be faster than rendering.
  const latest = useRef(position);
  latest.current = position;
  const goToStep = (to: number) => {
    const next = Math.max(0, Math.min(to, path.length));
    latest.current = next;
    setCursor(next);
    onGoTo(next === path.length ? null : recordAt(path, next));
  };
  useLayoutEffect(() => {
    keys.onStep = (by) => goToStep(latest.current + by);
    return () => {
      keys.onStep = null;
    };
  });
  if (problem !== null) return <p class="notice error">{problem}</p>;
  if (chart === null) return <p class="empty">Loading the state machine …</p>;
  const now = { state: view.state === null ? null : stateName(view.state), event: view.lastEvent };
  const shown = isStepping ? momentAt(path, position) : now;
  return (
    <Statechart
      chart={chart}
      active={shown.state}
      path={shownPath}
      lastEvent={shown.event}
      stepping={{ position, of: path.length, onGoTo: goToStep }}
      guessedFrom={(received?.upTo ?? 0) + 1}
      onGoTo={onGoTo}
    />
  );
}

/** State machines by id and version. Sessions of one gateway share them, so that each is drawn once. */
const charts = new Map<string, Chart>();

function knownChart(machine: Chart): Chart {
  const name = `${machine.id} ${machine.version}`;
  const known = charts.get(name) ?? machine;
  charts.set(name, known);
  return known;
}

/** The received steps, followed by the most likely ones for records that arrived before their steps. */
function pathOf(
  chart: Chart,
  records: readonly JournalRecord[],
  newest: number,
  received: ReceivedSteps | null,
): readonly ChartStep[] {
  const index = indexChart(chart);
  const { steps, upTo, state } = received ?? { steps: [], upTo: 0, state: null };
  // Records are dense: the record with number n has the index n - 1.
  const behind = records
    .slice(upTo, newest)
    .map(({ n, events, state: after }) => ({ n, events: events.map(chartEvent), state: stateName(after) }));
  const known = upTo > newest ? steps.slice(0, positionAfter(steps, newest)) : steps;
  return [...known, ...pathThrough(index, state ?? entered(index, ''), behind)];
}
