/** Lookups in a statechart, independent of sessions. */
import type { Chart, ChartState } from '@coxswain/protocol';

/** A chart with its states by path. */
export interface ChartIndex {
  readonly chart: Chart;
  readonly states: ReadonlyMap<string, ChartState>;
  /** The path of the parent state; null at the root. */
  readonly parents: ReadonlyMap<string, string | null>;
}

/** Indexes all states of a chart. */
export function indexChart(chart: Chart): ChartIndex {
  const states = new Map<string, ChartState>();
  const parents = new Map<string, string | null>();
  const visit = (state: ChartState, parent: string | null): void => {
    states.set(state.path, state);
    parents.set(state.path, parent);
    for (const child of state.states) visit(child, state.path);
  };
  visit(chart.root, null);
  return { chart, states, parents };
}

/** A state and its ancestors, innermost first; the root is last. */
export function around({ parents }: ChartIndex, path: string): string[] {
  const found: string[] = [];
  for (let at: string | null | undefined = path; at !== null && at !== undefined; at = parents.get(at)) found.push(at);
  return found;
}

/** The innermost state that a transition to this state enters: its initial state, recursively. */
export function entered({ states }: ChartIndex, path: string): string {
  let at = path;
  for (let initial = states.get(at)?.initial ?? null; initial !== null; initial = states.get(at)?.initial ?? null)
    at = initial;
  return at;
}

/** The last segment of a path. */
export function shortName(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1);
}
