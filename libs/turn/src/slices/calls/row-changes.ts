/**
 * The changes of a call's row by events, except the changes of `CallNotes` alone (`noteOnCall`, table.ts) and those in
 * a copy (`callAfterCopy`, copies/copies.ts). Evolvers call them, in transitions.ts, approvals.ts, children.ts and
 * preempt.ts. `endRow` applies to a row with any status. Each of the others applies to certain statuses, and returns a row
 * with another status unchanged, because an event is never rejected (EVOLVE-1, core/evolve.ts).
 */
import type { EventOf } from '@coxswain/protocol';
import type { Placed } from '../../core/journal-place.ts';
import type { CallAt, CallCancel, CallDecision, CallRow, ReturnedOutcome } from './state.ts';

/**
 * Spread before a row that gets more members on a frequent path. If the row itself comes first, V8 (as of Node 20) copies
 * it at once, and takes ten times as long to add a member to the copy.
 */
const BLANK = {};

/** The members that a row gets when it starts to wait for a human approval. */
export type Wait = Pick<CallAt<'parked'>, 'requested_by' | 'asked_at_ms' | 'expiry' | 'notice'>;

/** Removes the members that a row no longer needs after the wait. */
const WAITS_NO_MORE = { expiry: undefined, notice: undefined };

/** Removes the members that only a sent call has, when a running call gets into doubt. */
const NOT_RUNNING = {
  effect_id: undefined,
  epoch: undefined,
  accepted: undefined,
  cancel: undefined,
  preempted: undefined,
};

/**
 * A human approval was requested. A running call gets into doubt (`in_doubt`): its outcome is unknown, and its effect
 * no longer counts.
 */
export function parkRow(row: CallRow, wait: Wait): CallRow {
  if (row.status === 'proposed') return { ...row, ...wait, status: 'parked', problem: undefined, decided: undefined };
  if (row.status !== 'running') return row;
  return { ...row, ...wait, ...NOT_RUNNING, status: 'parked', in_doubt: true, decided: undefined };
}

/** The notification of the approval request was sent, or has failed. */
export function settleNotice(row: CallRow): CallRow {
  return row.status === 'parked' ? { ...row, notice: undefined } : row;
}

/** The wait for an approval has ended without a decision, or the approval of a call that has not started no longer counts. */
export function unparkRow(row: CallRow): CallRow {
  return row.status === 'parked' || row.status === 'allowed'
    ? { ...row, ...WAITS_NO_MORE, decided: undefined, status: 'proposed' }
    : row;
}

/** The wait for an approval has ended with a decision, possibly with edited arguments. */
export function decideRow(row: CallRow, decided: CallDecision, args: EventOf<'approval_decided'>['args']): CallRow {
  if (row.status !== 'parked') return row;
  const afterWait = { ...row, ...WAITS_NO_MORE, decided, ...(args ? { args } : {}) };
  return decided.decision === 'allow' ? { ...afterWait, status: 'allowed' } : { ...afterWait, status: 'proposed' };
}

/** The effect of the call was requested. */
export function startRow(row: CallRow, event: Placed<'call_started'>, epoch: number): CallRow {
  if (row.status !== 'proposed' && row.status !== 'allowed') return row;
  const { effect_id, at_ms: started_at_ms } = event;
  return {
    ...BLANK,
    ...row,
    status: 'running',
    effect_id,
    epoch,
    started_at_ms,
    problem: undefined,
    in_doubt: undefined,
  };
}

/** A worker has accepted the request of this epoch, or the start command of the child is stored. */
export function acceptRow(row: CallRow, epoch: number): CallRow {
  return row.status === 'running' ? { ...row, accepted: epoch } : row;
}

/** The child of a delegation has failed, and another one starts in the same record. */
export function failChild(row: CallRow, restarts: number): CallRow {
  return row.status === 'running' ? { ...row, effect_id: undefined, accepted: undefined, restarts } : row;
}

/** Another child of the delegation has started. */
export function restartChild(row: CallRow, effect_id: string, epoch: number): CallRow {
  return row.status === 'running' ? { ...row, effect_id, epoch } : row;
}

/** A preempting interrupt has ordered the end of a running call. The outcome of the call ends it. */
export function orderPreemption(row: CallRow, { actor }: NonNullable<CallAt<'running'>['preempted']>): CallRow {
  return row.status === 'running' ? { ...row, preempted: { actor } } : row;
}

/** A cancel of a call that was sent and has not ended was requested: it runs, or hooks check its result. */
export function orderCancel(row: CallRow, cancel: CallCancel): CallRow {
  return row.status === 'running' || row.status === 'returned' ? { ...row, cancel } : row;
}

/** A cancel has ended the call at once. Its row keeps the cancel, so that a repeated one gets the same reason. */
export function noteImmediateCancel(row: CallRow, cancel: CallCancel): CallRow {
  return row.status === 'ended' && !row.cancel ? { ...row, cancel } : row;
}

/** The call has its outcome, and PostToolUse hooks must check it. */
export function returnRow(row: CallRow, outcome: ReturnedOutcome): CallRow {
  return row.status === 'running' ? { ...BLANK, ...row, status: 'returned', returned: outcome } : row;
}

/** The call has its result. */
export function endRow(row: CallRow, { status, is_error }: EventOf<'call_ended'>): CallRow {
  return { ...BLANK, ...row, ...WAITS_NO_MORE, status: 'ended', ended: status, is_error, returned: undefined };
}
