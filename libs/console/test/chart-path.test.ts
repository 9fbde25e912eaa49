/** The path through a chart, derived from a journal alone. */
import type { Chart, JournalRecord } from '@coxswain/protocol';
import { turnChart } from '@coxswain/session';
import { applyEvent, emptyState, leafOf } from '@coxswain/turn';
import { describe, expect, test } from 'vitest';
import { journal, journalNames } from '../../../tests/traces/golden-journals.ts';
import { entered, indexChart } from '../src/statechart/chart.ts';
import { type ChartRecord, type ChartStep, pathThrough, stepsOf } from '../src/statechart/chart-path.ts';
import { chartEvent } from '../src/view/chart-event.ts';
import { stateName } from '../src/view/state-name.ts';

const index = indexChart(turnChart());

describe('a path that is derived from a golden journal uses transitions of the chart only, and ends where its journal does:', () => {
  test.each(journalNames)('%s', (name) => {
    const known = knownOf(journal(name));
    const derived = pathThrough(index, entered(index, ''), known);
    let at = entered(index, '');
    for (const { from, to, event } of derived) {
      expect(event, `${from} to ${to}`).not.toBeNull();
      expect(from).toBe(at);
      at = to;
    }
    expect(at).toBe(known.at(-1)?.state);
  });
});

test('of all records of the golden journals, in at least 95 of 100 it is the very path of the machine', () => {
  let records = 0;
  let same = 0;
  for (const name of journalNames) {
    const gone = gonePath(journal(name));
    const derived = derivedPath(pathThrough(index, entered(index, ''), knownOf(journal(name))));
    for (const { n } of journal(name)) {
      records += 1;
      if (derived.get(n)?.join() === gone.get(n)?.join()) same += 1;
    }
  }
  expect(records).toBeGreaterThan(1_000);
  expect(same / records).toBeGreaterThan(0.95);
});

function knownOf(records: readonly JournalRecord[]): ChartRecord[] {
  return records.map(({ n, events, state }) => ({ n, events: events.map(chartEvent), state: stateName(state) }));
}

/** Where the machine itself went, by record. */
function gonePath(records: readonly JournalRecord[]): Map<number, string[]> {
  let state = emptyState(records[0]?.session_id ?? '');
  const gone = new Map<number, string[]>();
  for (const { n, at, events } of records) {
    for (const event of events) {
      const before = leafOf(state);
      state = applyEvent(state, event, n, Date.parse(at));
      if (leafOf(state) !== before) gone.set(n, [...(gone.get(n) ?? []), `${event.type} ${leafOf(state)}`]);
    }
  }
  return gone;
}

/** The same, as derived: what happens at once belongs to the event before it. */
function derivedPath(steps: readonly ChartStep[]): Map<number, string[]> {
  const merged: ChartStep[] = [];
  for (const step of steps) {
    const last = merged.at(-1);
    const goesOn = step.atOnce && last?.n === step.n && last.event === step.event && last.to === step.from;
    if (last && goesOn) merged[merged.length - 1] = { ...last, to: step.to };
    else merged.push(step);
  }
  const derived = new Map<number, string[]>();
  for (const { n, from, to, event } of merged)
    if (from !== to) derived.set(n, [...(derived.get(n) ?? []), `${event} ${to}`]);
  return derived;
}

const way = (event: string, target: string | null, guard: string | null = null) => ({ event, target, guard });
const state = (
  path: string,
  transitions: ReturnType<typeof way>[] = [],
  states: Chart['root'][] = [],
): Chart['root'] => ({
  path,
  tags: [],
  initial: states[0]?.path ?? null,
  transitions,
  states,
});
const small = indexChart({
  id: 'lamp',
  version: '1',
  root: state(
    '',
    [way('break', 'broken')],
    [
      state('off', [way('press', 'on', 'has_power'), way('press', 'dark')]),
      state('on', [], [state('on.warm', [way('wait', 'on.hot')]), state('on.hot', [way('', 'off', 'is_too_hot')])]),
      state('dark'),
      state('broken'),
    ],
  ),
});
const steps = (from: string, events: string[], to: string) =>
  stepsOf(small, from, { n: 7, events: events.map((type) => ({ type })), state: to }).map(
    (step) => `${step.from} ${step.atOnce ? 'at once' : step.event} ${step.to}`,
  );

test('a guard is judged by where it has led', () => {
  expect(steps('off', ['press'], 'on.warm')).toEqual(['off press on.warm']);
  expect(steps('off', ['press'], 'dark')).toEqual(['off press dark']);
});
test('a state with others within it is entered at its first', () => {
  expect(steps('off', ['press', 'wait'], 'on.hot')).toEqual(['off press on.warm', 'on.warm wait on.hot']);
});
test('what happens at once is a step of its own', () => {
  expect(steps('on.warm', ['wait'], 'off')).toEqual(['on.warm wait on.hot', 'on.hot at once off']);
});
test('ways of the states around hold, too', () =>
  expect(steps('on.hot', ['break'], 'broken')).toEqual(['on.hot break broken']));
test('events that the chart does not know change nothing', () => expect(steps('dark', ['rain'], 'dark')).toEqual([]));
test('what no way explains is a jump that says so', () => {
  expect(stepsOf(small, 'dark', { n: 7, events: [{ type: 'press' }], state: 'on.hot' })).toEqual([
    { from: 'dark', to: 'on.hot', event: null, atOnce: false, n: 7 },
  ]);
});
