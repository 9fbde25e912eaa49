/** A session as it stands in lists: what its newest record says by itself. */
import type { JournalRecord, StateValue, StopReason } from '@coxswain/protocol';

/** One line of a list of sessions. */
export interface SessionListing {
  readonly session_id: string;
  /** The newest record. */
  readonly n: number;
  /** When it was written, ISO 8601. */
  readonly at: string;
  readonly state: StateValue;
  /** How the newest run ended; null while it runs, and where only older records say so. */
  readonly stop_reason: StopReason | null;
}

/** The listing of a session whose newest record this is. */
export function listingOf(record: JournalRecord): SessionListing {
  const end = record.events.findLast((event) => event.type === 'agent_end');
  return {
    session_id: record.session_id,
    n: record.n,
    at: record.at,
    state: record.state,
    stop_reason: end?.type === 'agent_end' ? end.stop_reason : null,
  };
}

/** The top-level state's name: `function_execute` of `{function_execute: "running"}`. */
export function topState(state: StateValue): string {
  return typeof state === 'string' ? state : (Object.keys(state)[0] ?? '');
}

/** Whether a session in this state has ended; a prompt starts its next run. */
export function hasEnded(state: StateValue): boolean {
  const top = topState(state);
  return top === 'stopped' || top === 'failed';
}

/** How lists show a state: `failed (error)`, `stopped (cancelled)`, never a bare `stopped`. */
export function describeState(state: StateValue, stopReason: StopReason | null): string {
  const top = topState(state);
  return hasEnded(state) && stopReason !== null ? `${top} (${stopReason})` : top;
}
