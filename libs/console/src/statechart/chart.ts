/** Looking about in a statechart. It knows nothing of sessions. */
import type { Chart, ChartState } from '@coxswain/protocol';

/** A chart with its states by path. */
export interface ChartIndex {
  readonly chart: Chart;
  readonly states: ReadonlyMap<string, ChartState>;
  /** Path of the state around it; null at the root. */
  readonly parents: ReadonlyMap<string, string | null>;
}

/** Looks every state up once. */
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

/** A state and all around it, innermost first; the root is the last. */
export function around({ parents }: ChartIndex, path: string): string[] {
  const found: string[] = [];
  for (let at: string | null | undefined = path; at !== null && at !== undefined; at = parents.get(at)) found.push(at);
  return found;
}

/** Where a transition to this state ends up: the first state within it, and within that. */
export function entered({ states }: ChartIndex, path: string): string {
  let at = path;
  for (let initial = states.get(at)?.initial ?? null; initial !== null; initial = states.get(at)?.initial ?? null)
    at = initial;
  return at;
}

/** The last part of a path. */
export function shortName(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1);
}
