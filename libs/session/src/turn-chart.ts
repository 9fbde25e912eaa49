/** The turn machine as data, for whoever draws it: nothing but names and where they lead. */
import { MACHINE_VERSION, turnMachine } from '@coxswain/turn';

/** One way out of a state. */
export interface ChartTransition {
  /** The journal's event; empty where it happens at once. */
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

/** The whole machine. */
export interface TurnChart {
  readonly id: string;
  readonly version: string;
  readonly root: ChartState;
}

type Node = (typeof turnMachine)['root'];

let chart: TurnChart | undefined;

/** The chart of this release's machine. The same object each time. */
export function turnChart(): TurnChart {
  chart ??= { id: turnMachine.id, version: String(MACHINE_VERSION), root: chartOf(turnMachine.root) };
  return chart;
}

function chartOf(node: Node): ChartState {
  const ways = [...[...node.transitions.values()].flat(), ...(node.always ?? [])];
  const first = node.initial?.target?.[0] as Node | undefined;
  return {
    path: pathOf(node),
    tags: [...node.tags],
    initial: first ? pathOf(first) : null,
    transitions: ways.map(({ eventType, guard, target }) => {
      const to = target?.[0] as Node | undefined;
      return { event: eventType, guard: typeof guard === 'string' ? guard : null, target: to ? pathOf(to) : null };
    }),
    states: (Object.values(node.states) as Node[]).map(chartOf),
  };
}

function pathOf({ path }: Node): string {
  return path.join('.');
}
