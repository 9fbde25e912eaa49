/** Names of states: `function_execute.running`. */
import type { StateValue } from '@coxswain/protocol';

/** The name of a state with dots, as in the paths of the chart. */
export function stateName(state: StateValue): string {
  if (typeof state === 'string') return state;
  const [top, child] = Object.entries(state)[0] ?? [];
  return top === undefined ? '' : `${top}.${child}`;
}
