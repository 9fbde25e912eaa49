/** What a record's state says by its names alone. */
import type { StateValue } from './record.ts';

/** The top-level state's name: `function_execute` of `{function_execute: "running"}`. */
export function topState(state: StateValue): string {
  return typeof state === 'string' ? state : (Object.keys(state)[0] ?? '');
}

/** Whether a session in this state has ended; a prompt starts its next run. */
export function hasEnded(state: StateValue): boolean {
  const top = topState(state);
  return top === 'stopped' || top === 'failed';
}
