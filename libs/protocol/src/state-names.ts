/** What a record's state says by its names alone. */
import type { StateValue } from './record.ts';

/** The name of a session's top-level state. Lists also show `deleted` and `unreadable`. */
export type SessionStateName =
  | 'provisioning'
  | 'assistant_streaming'
  | 'function_execute'
  | 'function_awaiting_approval'
  | 'steering_check'
  | 'daemon_idle'
  | 'suspended'
  | 'tearing_down'
  | 'stopped'
  | 'failed'
  | 'deleted'
  | 'unreadable';

/** The top-level state's name: `function_execute` of `{function_execute: "running"}`. A newer host may have a name more. */
export function topState(state: StateValue): SessionStateName {
  return (typeof state === 'string' ? state : (Object.keys(state)[0] ?? '')) as SessionStateName;
}

/** Whether a session in this state has ended; a prompt starts its next run. */
export function hasEnded(state: StateValue): boolean {
  const top = topState(state);
  return top === 'stopped' || top === 'failed';
}
