/**
 * Derives the path through a statechart from the state after each record and the events in between. The events do not
 * say which of several guarded transitions was taken. Of all paths to the known state, the one that explains the most
 * events is shown. Between equal ones, it is the one whose guards are evaluated first.
 */
import type { ChartTransition } from '@coxswain/protocol';
import { around, type ChartIndex, entered, shortName } from './chart.ts';

/** A transition that was taken. */
export interface ChartStep {
  readonly from: string;
  readonly to: string;
  /** The event; null if no path in the chart explains the step. */
  readonly event: string | null;
  /** Whether it was a transition without an event, taken at once after another one. */
  readonly atOnce: boolean;
  /** The number of its record. */
  readonly n: number;
}

/** An event, and its hint about the state in which it was taken. */
export interface ChartEvent {
  readonly type: string;
  /** The last segment of the path of that state, if the event names it. */
  readonly within?: string | undefined;
}

/** A record: its events, and the state after it. */
export interface ChartRecord {
  readonly n: number;
  readonly events: readonly ChartEvent[];
  /** The innermost state after the record. */
  readonly state: string;
}

/** The steps of one record, from the state before it. */
export function stepsOf(index: ChartIndex, from: string, record: ChartRecord): ChartStep[] {
  if (!index.states.has(from) || !index.states.has(record.state)) return jump(from, record);
  // The states that are possible after each event, with the path to them.
  let reached: ReadonlyMap<string, Route | null> = new Map([[from, null]]);
  for (const { type, within } of record.events)
    reached = settled(index, after(index, statesNamedBy(reached, within), type), type);
  if (!reached.has(record.state)) return jump(from, record);
  const steps: ChartStep[] = [];
  for (let route = reached.get(record.state) ?? null; route !== null; route = route.before)
    steps.unshift({ from: route.from, to: route.to, event: route.event, atOnce: route.atOnce, n: record.n });
  return steps;
}

/** All steps of a journal. @param start The state before the first record. */
export function pathThrough(index: ChartIndex, start: string, records: Iterable<ChartRecord>): ChartStep[] {
  const steps: ChartStep[] = [];
  let from = start;
  for (const record of records) {
    steps.push(...stepsOf(index, from, record));
    from = record.state;
  }
  return steps;
}

interface Route {
  readonly from: string;
  readonly to: string;
  readonly event: string;
  readonly atOnce: boolean;
  readonly before: Route | null;
  /** The score of a path: an event with a transition counts more than a transition without an event. */
  readonly score: number;
}

/** Whether one path explains more than another. Of equal ones the first wins: its guards were evaluated before. */
function explainsMore(route: Route | null, known: Route | null | undefined): boolean {
  return known === undefined || (route?.score ?? 0) > (known?.score ?? 0);
}

function jump(from: string, { n, state }: ChartRecord): ChartStep[] {
  return from === state ? [] : [{ from, to: state, event: null, atOnce: false, n }];
}

/** Of the possible states, those that the event names; all, if it names none of them. */
function statesNamedBy(
  reached: ReadonlyMap<string, Route | null>,
  within: string | undefined,
): ReadonlyMap<string, Route | null> {
  if (within === undefined) return reached;
  const fitting = [...reached].filter(([path]) => shortName(path) === within);
  return fitting.length === 0 ? reached : new Map(fitting);
}

function after(
  index: ChartIndex,
  reached: ReadonlyMap<string, Route | null>,
  event: string,
): ReadonlyMap<string, Route | null> {
  const next = new Map<string, Route | null>();
  for (const [state, route] of reached) {
    const transitions = transitionsFrom(index, state, event);
    // Events that the chart does not know are ignored.
    if (transitions.length === 0 && explainsMore(route, next.get(state))) next.set(state, route);
    for (const { target, isOwn } of transitions) put(index, next, state, target, event, route, isOwn);
  }
  return next;
}

/** Follows the transitions without an event. */
function settled(
  index: ChartIndex,
  reached: ReadonlyMap<string, Route | null>,
  event: string,
): ReadonlyMap<string, Route | null> {
  const next = new Map<string, Route | null>();
  const follow = (state: string, route: Route | null, passed: readonly string[]): void => {
    // Stops at a cycle of transitions without an event.
    if (passed.includes(state)) return;
    const transitions = transitionsFrom(index, state, '');
    if (transitions.every(({ guard }) => guard !== null) && explainsMore(route, next.get(state)))
      next.set(state, route);
    for (const { target } of transitions) {
      if (target === null) continue;
      const to = entered(index, target);
      const taken: Route = { from: state, to, event, atOnce: true, before: route, score: (route?.score ?? 0) + 1 };
      follow(to, taken, [...passed, state]);
    }
  };
  for (const [state, route] of reached) follow(state, route, []);
  return next;
}

function put(
  index: ChartIndex,
  next: Map<string, Route | null>,
  from: string,
  target: string | null,
  event: string,
  before: Route | null,
  isOwn: boolean,
): void {
  const to = target === null ? from : entered(index, target);
  // A state with its own transition for the event that stays is the more likely place of the event.
  const stays = before === null || !isOwn ? before : { ...before, score: before.score + 1 };
  const route = target === null ? stays : { from, to, event, atOnce: false, before, score: (before?.score ?? 0) + 2 };
  if (explainsMore(route, next.get(to))) next.set(to, route);
}

interface OpenTransition extends ChartTransition {
  /** Whether the transition belongs to a state below the root. */
  readonly isOwn: boolean;
}

/** The transitions that may be taken, up to and including the first one without a guard. */
function transitionsFrom(index: ChartIndex, state: string, event: string): OpenTransition[] {
  const open: OpenTransition[] = [];
  for (const path of around(index, state)) {
    for (const transition of index.states.get(path)?.transitions ?? []) {
      if (transition.event !== event) continue;
      open.push({ ...transition, isOwn: path !== '' });
      if (transition.guard === null) return open;
    }
  }
  return open;
}
