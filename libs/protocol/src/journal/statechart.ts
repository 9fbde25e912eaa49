/**
 * A statechart as data for drawing: the states and transitions of a machine with nested states.
 */

/** One transition of a state. */
export interface ChartTransition {
  /** The event of the transition; empty for an immediate one. */
  readonly event: string;
  readonly guard: string | null;
  /** The path of the target state; null for a transition without a change of state. */
  readonly target: string | null;
}

/** A state with its child states. */
export interface ChartState {
  /** The path as in a record's state, with dots: `function_execute.running`; empty for the root. */
  readonly path: string;
  readonly tags: readonly string[];
  /** The path of the initial child state; null without children. */
  readonly initial: string | null;
  readonly transitions: readonly ChartTransition[];
  readonly states: readonly ChartState[];
}

/** A whole machine. */
export interface Chart {
  readonly id: string;
  readonly version: string;
  readonly root: ChartState;
}
