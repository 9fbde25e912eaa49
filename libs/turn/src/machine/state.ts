/** The state of a session: its state in the chart, and its context. */
import type { SessionContext } from '../core/context.ts';

/** The part of a machine snapshot that the pure functions read. */
export interface MachineState {
  /** XState's state value: the name of a state, or the name of a parent with the name of its child. */
  readonly value: string | { readonly [parent: string]: unknown };
  readonly context: SessionContext;
}

/**
 * The name of the state that a session is in: `stopped`, `failed`, or `parent.child`. Not checked against the chart.
 * @throws Error if the value is an empty object.
 */
export function leafOf({ value }: Pick<MachineState, 'value'>): string {
  if (typeof value === 'string') return value;
  for (const parent in value) return `${parent}.${value[parent]}`;
  throw new Error('a state value has no parent');
}

/** The name of the top-level state that a session is in. */
export function topStateOf(state: Pick<MachineState, 'value'>): string {
  const leaf = leafOf(state);
  const dot = leaf.indexOf('.');
  return dot < 0 ? leaf : leaf.slice(0, dot);
}

/** Whether the session's run has ended, or none has started. */
export function isEnded(state: Pick<MachineState, 'value'>): boolean {
  const top = topStateOf(state);
  return top === 'stopped' || top === 'failed';
}
