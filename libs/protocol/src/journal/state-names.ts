/**
 * The names in the state of a record.
 */
import type { StateValue } from './record.ts';

/** The names of a session's top-level states; and `deleted` and `unreadable`, which only lists show. */
export const SESSION_STATE_NAMES = [
  'provisioning',
  'assistant_streaming',
  'function_execute',
  'function_awaiting_approval',
  'steering_check',
  'daemon_idle',
  'suspended',
  'tearing_down',
  'stopped',
  'failed',
  'deleted',
  'unreadable',
] as const;
/** A name of {@link SESSION_STATE_NAMES}. */
export type SessionStateName = (typeof SESSION_STATE_NAMES)[number];

/**
 * The name of the top-level state: `function_execute` of `{function_execute: "running"}`. A newer host may have further
 * names.
 */
export function topState(state: StateValue): SessionStateName {
  return (typeof state === 'string' ? state : (Object.keys(state)[0] ?? '')) as SessionStateName;
}

/** Whether a session in this state has ended; a prompt starts its next run. */
export function hasEnded(state: StateValue): boolean {
  const top = topState(state);
  return top === 'stopped' || top === 'failed';
}
