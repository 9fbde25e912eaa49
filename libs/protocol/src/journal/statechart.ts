/** A statechart as data, for whoever draws it: nothing but names and where they lead. Any machine with nested states will do. */

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
  /** As in a record's state, with dots: `function_execute.running`; empty at the root. */
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
