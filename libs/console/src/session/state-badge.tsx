/** A state in words and a colour: never by its colour alone. */
import type { StateValue } from '@coxswain/protocol';
import type { VNode } from 'preact';
import { describeState, topState } from '../browser-client.ts';

/** The visual category of a state. */
export function categoryOf(state: StateValue, stopReason: string | null): string {
  switch (topState(state)) {
    case 'function_awaiting_approval':
      return 'waiting';
    case 'suspended':
    case 'daemon_idle':
      return 'idle';
    case 'stopped':
      return stopReason === 'cancelled' ? 'idle' : 'done';
    case 'failed':
    case 'unreadable':
      return 'failed';
    case 'deleted':
      return 'idle';
    default:
      return 'running';
  }
}

/** The badge of a state. */
export function StateBadge({
  state,
  stopReason = null,
}: {
  readonly state: StateValue;
  readonly stopReason?: string | null;
}): VNode {
  const text = describeState(state, stopReason as Parameters<typeof describeState>[1]).replaceAll('_', ' ');
  return <span class={`badge ${categoryOf(state, stopReason)}`}>{text}</span>;
}
