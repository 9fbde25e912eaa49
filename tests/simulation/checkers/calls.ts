/**
 * Each call that a model asked for has exactly one result, in its turn; none runs that was refused, and none twice. None is
 * cancelled that no person, parent or host has cancelled.
 */
import { callsOf } from '@coxswain/protocol';
import { UNKNOWN_OUTCOME } from '@coxswain/turn';
import type { Checker } from './check.ts';
import { eventsOf } from './check.ts';

interface Call {
  started: number;
  /** How often it may be started: once more for each time that a person was asked about it after a crash. */
  mayStart: number;
  ended: number;
  /** The sending that was taken up. */
  accepted: number;
  refused: boolean;
}

/** See the top of the file. */
export const checkCalls: Checker = (journal) => {
  const wrong: string[] = [];
  let batch = new Map<string, Call>();
  let cancelled = false;
  /** Why calls may end as cancelled now: the run was ended, or its calls preempted. */
  let canceller = false;
  const cancelledCalls = new Set<string>();
  for (const { n, event } of eventsOf(journal)) {
    const call = 'call_id' in event && event.call_id !== undefined ? batch.get(event.call_id) : undefined;
    switch (event.type) {
      case 'prompt_received':
        cancelled = false;
        canceller = false;
        break;
      case 'run_failed':
        canceller = true;
        break;
      case 'budget_threshold':
        if (event.percent >= 100) canceller = true;
        break;
      case 'steering_received':
      case 'reminder_injected':
      case 'followup_received':
        if ('preempt' in event && event.preempt) canceller = true;
        break;
      case 'call_cancel_requested':
      case 'child_ended':
        cancelledCalls.add(event.call_id);
        break;
      case 'control_outcome':
        if (event.control === 'cancel' && event.status === 'cancelled') {
          cancelled = true;
          canceller = true;
        } else if (event.control === 'cancel_call' && event.target !== undefined) cancelledCalls.add(event.target);
        break;
      case 'message_complete':
        if (!event.message.partial)
          batch = new Map(
            callsOf(event.message).map(({ call_id }) => [
              call_id,
              { started: 0, mayStart: 1, ended: 0, accepted: 0, refused: false },
            ]),
          );
        break;
      case 'call_started':
        if (!call) wrong.push(`record ${n}: ${event.call_id} was started and never asked for`);
        else {
          if (++call.started > call.mayStart) wrong.push(`record ${n}: ${event.call_id} was started again`);
          if (call.ended > 0) wrong.push(`record ${n}: ${event.call_id} was started after its end`);
          if (call.refused) wrong.push(`record ${n}: ${event.call_id} was started although it was refused`);
        }
        if (cancelled) wrong.push(`record ${n}: ${event.call_id} was started in a run that is cancelled`);
        break;
      case 'call_accepted':
        if (!call || call.started === 0 || call.ended > 0)
          wrong.push(`record ${n}: ${event.call_id} was taken up and does not run`);
        else if (call.accepted === call.started) wrong.push(`record ${n}: ${event.call_id} was taken up again`);
        if (call) call.accepted = call.started;
        break;
      case 'approval_requested':
        if (call && event.requested_by === UNKNOWN_OUTCOME) call.mayStart++;
        break;
      case 'approval_decided':
        if (call && event.decision !== 'allow') call.refused = true;
        break;
      case 'call_ended':
        if (!call) wrong.push(`record ${n}: ${event.call_id} ended and was never asked for`);
        else {
          if (++call.ended > 1) wrong.push(`record ${n}: ${event.call_id} has a second result`);
          // A call that is cancelled before it is sent ends in the event before the outcome of its cancel.
          if (event.status === 'cancelled' && !canceller && !cancelledCalls.has(event.call_id)) {
            const [record] = journal.records.slice(n - 1);
            const isOrdered = record?.events.some(
              (one) => one.type === 'control_outcome' && one.control === 'cancel_call' && one.target === event.call_id,
            );
            if (!isOrdered) wrong.push(`record ${n}: ${event.call_id} is cancelled, and nothing has cancelled it`);
          }
          const ran = ['ok', 'interrupted'].includes(event.status);
          if (ran && call.started === 0) wrong.push(`record ${n}: ${event.call_id} is ${event.status} and never ran`);
          const cannotHaveRun = ['denied', 'skipped', 'aborted'].includes(event.status);
          if (cannotHaveRun && call.started > 0) wrong.push(`record ${n}: ${event.call_id} ran and is ${event.status}`);
        }
        break;
      case 'turn_end':
        for (const [callId, { ended }] of batch)
          if (ended !== 1) wrong.push(`record ${n}: ${callId} has ${ended} results at the end of its turn`);
        batch = new Map();
        break;
      default:
        break;
    }
  }
  return wrong;
};
