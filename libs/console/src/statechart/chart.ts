/** A statechart as data: what the viewer is given. It knows nothing of sessions; any machine with nested states will do. */

/** One way out of a state. */
export interface ChartTransition {
  /** The event that it takes; empty where it happens at once. */
  readonly event: string;
  readonly guard: string | null;
  /** The path of the state that it leads to; null where it takes the event and stays. */
  readonly target: string | null;
}

/** A state and those within it. */
export interface ChartState {
  /** With dots: `function_execute.running`; empty at the root. */
  readonly path: string;
  readonly tags: readonly string[];
  /** The path of the state within it that is entered first; null where there are none. */
  readonly initial: string | null;
  readonly transitions: readonly ChartTransition[];
  readonly states: readonly ChartState[];
}

/** A machine. */
export interface Chart {
  readonly id: string;
  readonly version: string;
  readonly root: ChartState;
}

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
