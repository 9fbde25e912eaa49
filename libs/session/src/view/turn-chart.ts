/** The turn machine as data, for programs that draw it. */
import type { Chart, ChartState } from '@coxswain/protocol';
import { MACHINE_VERSION, turnMachine } from '@coxswain/turn';

type Node = (typeof turnMachine)['root'];

let chart: Chart | undefined;

/** The chart of this release's machine. Returns the same object each time. */
export function turnChart(): Chart {
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
