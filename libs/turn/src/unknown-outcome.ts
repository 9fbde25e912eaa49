/** Calls whose outcome is unknown, as their host or the process that ran them stopped answering: what is asked of a person, and how they end without being run again. */
import type { SessionEvent, ToolResult } from '@coxswain/protocol';
import { asksFor } from './approvals.ts';
import type { CallRow, SessionContext } from './context.ts';
import * as q from './queries.ts';

/** What asks for a person about such a call. */
export const UNKNOWN_OUTCOME = 'unknown_outcome';

/** The question. */
export const UNKNOWN_QUESTION =
  'The outcome of this tool call is unknown: the host or process that ran it stopped responding. ' +
  'Allow to re-run it. Deny to report the unknown outcome to the model.';

/** Whether a person is to be asked about a call that came back as interrupted. An interrupt that waits answers for them. */
export function asksAboutUnknown(context: SessionContext, row: CallRow): boolean {
  const stopped = context.aborting || row.cancel || row.preempted;
  return context.pinned?.asks_unknown === true && !stopped && !q.interruptWaits(context);
}

/** Parks a call with the question. */
export function askAboutUnknown(context: SessionContext, { call_id, tool, args }: CallRow): SessionEvent {
  return {
    type: 'approval_requested',
    call_id,
    tool,
    args,
    requested_by: UNKNOWN_OUTCOME,
    question: UNKNOWN_QUESTION,
    ...asksFor(context),
  };
}

/** The end of a call in doubt that is not run again. `why` is a sentence about what ended the question. */
export function endedUnknown({ call_id, tool }: CallRow, why: string): SessionEvent {
  const text = `The outcome of this tool call is unknown: the host or process that ran it stopped responding. It was not re-run. ${why}`;
  const result: ToolResult = {
    content: [{ type: 'text', text }],
    is_error: true,
    detail: { code: 'tool_interrupted' },
  };
  return { type: 'call_ended', call_id, tool, status: 'interrupted', result, is_error: true, duration_ms: 0 };
}
