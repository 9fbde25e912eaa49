/**
 * The way through a chart, told by what is known of it: the state after each record, and the events in between. Which of
 * several guarded ways was taken is not in the events; of all ways that lead to the state that is known, the one that
 * explains most of the events is shown, and of those the one whose guards are asked first.
 */
import type { ChartTransition } from '@coxswain/protocol';
import { around, type ChartIndex, entered, shortName } from './chart.ts';

/** One transition that was taken. */
export interface ChartStep {
  readonly from: string;
  readonly to: string;
  /** The event that was taken; null where no way through the chart explains it. */
  readonly event: string | null;
  /** It was not the event that led there: a guard held once the event was taken. */
  readonly atOnce: boolean;
  /** The record that it belongs to. */
  readonly n: number;
}

/** An event, and what it says of where it happened. */
export interface ChartEvent {
  readonly type: string;
  /** The last part of the path of the state that it was taken in, where it names it. */
  readonly within?: string | undefined;
}

/** What is known: after each record a state, and the events that led there. */
export interface ChartRecord {
  readonly n: number;
  readonly events: readonly ChartEvent[];
  /** The innermost state afterwards. */
  readonly state: string;
}

/** The steps of one record, from the state before it. */
export function stepsOf(index: ChartIndex, from: string, record: ChartRecord): ChartStep[] {
  if (!index.states.has(from) || !index.states.has(record.state)) return jump(from, record);
  // For each event, the states that one may be in after it, with the way there.
  let reached: ReadonlyMap<string, Way | null> = new Map([[from, null]]);
  for (const { type, within } of record.events)
    reached = settled(index, after(index, whereSaid(reached, within), type), type);
  if (!reached.has(record.state)) return jump(from, record);
  const steps: ChartStep[] = [];
  for (let way = reached.get(record.state) ?? null; way !== null; way = way.before)
    steps.unshift({ from: way.from, to: way.to, event: way.event, atOnce: way.atOnce, n: record.n });
  return steps;
}

/** All steps of a journal. @param start the state before the first record. */
export function pathThrough(index: ChartIndex, start: string, records: Iterable<ChartRecord>): ChartStep[] {
  const steps: ChartStep[] = [];
  let from = start;
  for (const record of records) {
    steps.push(...stepsOf(index, from, record));
    from = record.state;
  }
  return steps;
}

interface Way {
  readonly from: string;
  readonly to: string;
  readonly event: string;
  readonly atOnce: boolean;
  readonly before: Way | null;
  /** How much of what has happened it explains: events more than what they had happen. */
  readonly told: number;
}

/** Whether one way tells more than another. Of two that tell as much the first stands: its guards were asked before. */
function tellsMore(way: Way | null, known: Way | null | undefined): boolean {
  return known === undefined || (way?.told ?? 0) > (known?.told ?? 0);
}

function jump(from: string, { n, state }: ChartRecord): ChartStep[] {
  return from === state ? [] : [{ from, to: state, event: null, atOnce: false, n }];
}

/** Of the states that one may be in, those that the event names; all, where it names none of them. */
function whereSaid(
  reached: ReadonlyMap<string, Way | null>,
  within: string | undefined,
): ReadonlyMap<string, Way | null> {
  if (within === undefined) return reached;
  const fitting = [...reached].filter(([path]) => shortName(path) === within);
  return fitting.length === 0 ? reached : new Map(fitting);
}

function after(
  index: ChartIndex,
  reached: ReadonlyMap<string, Way | null>,
  event: string,
): ReadonlyMap<string, Way | null> {
  const next = new Map<string, Way | null>();
  for (const [state, way] of reached) {
    const ways = waysOut(index, state, event);
    // An event that a chart does not know is none of its business.
    if (ways.length === 0 && tellsMore(way, next.get(state))) next.set(state, way);
    for (const { target, isOwn } of ways) put(index, next, state, target, event, way, isOwn);
  }
  return next;
}

/** Follows what happens at once. */
function settled(
  index: ChartIndex,
  reached: ReadonlyMap<string, Way | null>,
  event: string,
): ReadonlyMap<string, Way | null> {
  const next = new Map<string, Way | null>();
  const follow = (state: string, way: Way | null, passed: readonly string[]): void => {
    // A machine that went round at once would never stand still.
    if (passed.includes(state)) return;
    const ways = waysOut(index, state, '');
    if (ways.every(({ guard }) => guard !== null) && tellsMore(way, next.get(state))) next.set(state, way);
    for (const { target } of ways) {
      if (target === null) continue;
      const to = entered(index, target);
      const gone: Way = { from: state, to, event, atOnce: true, before: way, told: (way?.told ?? 0) + 1 };
      follow(to, gone, [...passed, state]);
    }
  };
  for (const [state, way] of reached) follow(state, way, []);
  return next;
}

function put(
  index: ChartIndex,
  next: Map<string, Way | null>,
  from: string,
  target: string | null,
  event: string,
  before: Way | null,
  isOwn: boolean,
): void {
  const to = target === null ? from : entered(index, target);
  // A state that says itself that it takes an event and stays is likelier to be where it was taken.
  const stays = before === null || !isOwn ? before : { ...before, told: before.told + 1 };
  const way = target === null ? stays : { from, to, event, atOnce: false, before, told: (before?.told ?? 0) + 2 };
  if (tellsMore(way, next.get(to))) next.set(to, way);
}

interface OpenWay extends ChartTransition {
  /** Not every state's. */
  readonly isOwn: boolean;
}

/** The ways that may be taken: up to and with the first that asks nothing. */
function waysOut(index: ChartIndex, state: string, event: string): OpenWay[] {
  const ways: OpenWay[] = [];
  for (const path of around(index, state)) {
    for (const way of index.states.get(path)?.transitions ?? []) {
      if (way.event !== event) continue;
      ways.push({ ...way, isOwn: path !== '' });
      if (way.guard === null) return ways;
    }
  }
  return ways;
}
