/**
 * The hook points around the end of a run, in the order in which they are passed, each at most once. They are told of the
 * end and cannot hold it up: whatever they return, the next one follows, and then `agent_end`.
 */
import { assertNever, type JsonObject, type StopReason } from '@coxswain/protocol';
import type { SessionContext } from './context.ts';
import * as q from './queries.ts';

/** One of the points. */
export type EndingPoint = 'session_error' | 'session_end' | 'pre_finish' | 'on_unsettled_detected' | 'post_finish';

/** Whether a point is passed without asking anyone: nobody is registered for it, or it is not the case. */
export function passes(context: SessionContext, point: EndingPoint): boolean {
  // What is being asked is asked to its end, even if it has ceased to be the case.
  if (context.consult) return false;
  if (!q.isHooked(context, point)) return true;
  if (point === 'session_error') return context.stop_reason !== 'error';
  if (point === 'on_unsettled_detected') return unsettled(context) === 0;
  return false;
}

/** What hooks of a point are shown beside what all are shown. */
export function endingPayload(context: SessionContext, point: EndingPoint, stopReason: StopReason): JsonObject {
  switch (point) {
    case 'session_error': {
      const { code, message } = context.failure ?? { code: 'session_failed', message: '' };
      return { stop_reason: stopReason, error: { code, message }, failed_at: context.failed_at };
    }
    case 'on_unsettled_detected':
      return { stop_reason: stopReason, unsettled: waiting(context) };
    case 'session_end':
    case 'pre_finish':
    case 'post_finish':
      return { stop_reason: stopReason };
    default:
      return assertNever(point);
  }
}

// When a run ends its calls have ended and its approvals are decided: what may be left is what nobody has heard.
function unsettled(context: SessionContext): number {
  return context.pending.length + context.followups.length + context.jobs.length;
}

/** Undelivered injections that a payload names; the rest it counts. */
const NAMED_MAX = 64;

function waiting(context: SessionContext): JsonObject {
  const injections = [
    ...context.pending.map(({ command_id, kind }) => ({ command_id, kind })),
    ...context.followups.map(({ command_id }) => ({ command_id, kind: 'followup' })),
  ];
  const jobs = context.jobs.length > 0 ? { open_jobs: context.jobs.map(({ job_id }) => job_id) } : {};
  return { undelivered: injections.length, injections: injections.slice(0, NAMED_MAX), ...jobs };
}
