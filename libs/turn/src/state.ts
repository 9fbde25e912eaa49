/** Snapshots of the machine: what the pure functions read, and what the fold produces. */
import type { SnapshotFrom } from 'xstate';
import type { turnMachine } from './turn-machine.ts';

/** A snapshot of the turn machine. */
export type SessionState = SnapshotFrom<typeof turnMachine>;

/** The name of the state that a session is in: `stopped`, or `parent.child`. */
export function leafOf(state: Pick<SessionState, 'value'>): string {
  const value = state.value as string | Record<string, string>;
  if (typeof value === 'string') return value;
  for (const parent in value) return `${parent}.${value[parent]}`;
  throw new Error('a state value has no parent');
}

/** The name of the top-level state that a session is in. */
export function topStateOf(state: Pick<SessionState, 'value'>): string {
  const leaf = leafOf(state);
  const dot = leaf.indexOf('.');
  return dot < 0 ? leaf : leaf.slice(0, dot);
}

/** Whether the session's run has ended (or none has begun). */
export function isEnded(state: Pick<SessionState, 'value'>): boolean {
  const top = topStateOf(state);
  return top === 'stopped' || top === 'failed';
}
