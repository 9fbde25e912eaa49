/** What metrics count of a session, as its state says it. */
import type { SessionSummary } from '@coxswain/ports';
import { topState } from '@coxswain/protocol';
import type { SessionState } from '@coxswain/turn';

/** The summary of a state. A call that was asked about before times were kept counts as one of 1970. */
export function summaryOf({ value, context }: SessionState): SessionSummary {
  const asked = context.calls.filter(({ status }) => status === 'parked').map(({ asked_at_ms: ms = 0 }) => ms);
  return {
    state: topState(value as Parameters<typeof topState>[0]),
    approvals: asked.length,
    oldestApprovalMs: asked.length > 0 ? Math.min(...asked) : null,
  };
}
