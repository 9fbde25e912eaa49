/** How a state is called: `function_execute.running`. */
import type { StateValue } from '@coxswain/protocol';

/** A state's name with dots, as the chart's paths have it. */
export function stateName(state: StateValue): string {
  if (typeof state === 'string') return state;
  const [top, child] = Object.entries(state)[0] ?? [];
  return top === undefined ? '' : `${top}.${child}`;
}
