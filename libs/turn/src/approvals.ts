/**
 * Calls that wait for a person: what goes on beside the wait, and how it ends without one.
 *
 * A1  A wait costs nothing: beside it stands a timer where it expires, and an effect until somebody outside was told of it.
 * A2  The first decision wins, whoever makes it: a person, a hook that was told of it, or time.
 * A3  Nobody is told of a wait twice in one life of it, and nothing waits for the telling.
 */
import type { ConsultOutcome, EventOf, SessionEvent } from '@coxswain/protocol';
import type { CallDecision, CallRow, OpenConsult, SessionContext } from './context.ts';
import { because } from './decision.ts';
import { nextIndex } from './effect-index.ts';
import type { Effect, TimerEffect } from './effects.ts';
import type { PlacedEvent } from './evolve.ts';
import { denied } from './next.ts';
import * as q from './queries.ts';
import { endedUnknown } from './unknown-outcome.ts';

type Asked = EventOf<'approval_requested'>;

/** What a run asks for beside each question. */
export function asksFor({ pinned }: SessionContext): Pick<Asked, 'expire_after_ms' | 'notifies'> {
  const after = pinned?.permissions.expire_after_ms;
  return {
    ...(after === undefined ? {} : { expire_after_ms: after }),
    ...(pinned?.notifies ? { notifies: true as const } : {}),
  };
}

/** How many effects a question asks for (E2): first the timer of its end, then the notice. */
export function waitCount({ expire_after_ms, notifies }: Asked): number {
  return Number(expire_after_ms !== undefined) + Number(notifies === true);
}

/** What stands in the row of a call that begins to wait. */
export function waitsOf(context: SessionContext, event: Asked & PlacedEvent): Partial<CallRow> {
  const { epoch } = context;
  const index = nextIndex(context, event);
  const after_ms = event.expire_after_ms;
  const expires = after_ms !== undefined;
  return {
    asked_at_ms: event.at_ms,
    ...(expires ? { expiry: { id: `${event.n}-${index}`, epoch, after_ms, due_at_ms: event.at_ms + after_ms } } : {}),
    ...(event.notifies ? { notice: { id: `${event.n}-${index + Number(expires)}`, epoch } } : {}),
  };
}

/** What a row loses when its call waits no more. */
export const WAITS_NO_MORE: Partial<CallRow> = { expiry: undefined, notice: undefined };

/** The decision that an event states, as its row keeps it. Expired is as good as refused. */
export function decisionIn({ decision, actor, reason, hook }: EventOf<'approval_decided'>): CallDecision {
  return {
    decision: decision === 'allow' ? 'allow' : 'deny',
    actor,
    reason,
    ...(hook === undefined ? {} : { hook }),
    ...(decision === 'expired' ? { expired: true as const } : {}),
  };
}

/** The timers of the waits that end by themselves. A run that is unwinding ends them itself. */
export function expiriesOf({ calls, aborting }: SessionContext): readonly TimerEffect[] {
  if (aborting) return NO_TIMERS;
  return calls.flatMap(({ status, expiry }) =>
    status === 'parked' && expiry
      ? [
          {
            kind: 'timer',
            id: expiry.id,
            epoch: expiry.epoch,
            abort: null,
            dueAtMs: expiry.due_at_ms,
            what: 'approval',
          },
        ]
      : [],
  );
}
const NO_TIMERS: readonly TimerEffect[] = [];

/** The notices that have not been given yet. */
export function noticesOf({ calls, aborting }: SessionContext): readonly Effect[] {
  if (aborting) return NO_TIMERS;
  return calls.flatMap(({ status, notice, call_id }) =>
    status === 'parked' && notice ? [{ kind: 'notify', ...notice, abort: null, callId: call_id }] : [],
  );
}

/** What the end of a wait's time causes, beside its timer. */
export function approvalExpired({ calls }: SessionContext, timerId: string): SessionEvent[] {
  const row = calls.find(({ expiry, status }) => status === 'parked' && expiry?.id === timerId);
  return row ? [{ type: 'approval_decided', call_id: row.call_id, decision: 'expired' }] : [];
}

/** The end of a call that was refused by nobody in person: in time's stead, or in that of a hook that was told of the question. */
export function refusedUnasked(row: CallRow, { hook, reason, expired }: CallDecision): SessionEvent {
  if (row.in_doubt) return endedUnknown(row, expired ? NOT_IN_TIME : `Hook ${hook} denied a re-run${because(reason)}.`);
  if (expired) return denied(row, { by: 'expiry', reason: NOT_IN_TIME }, `The tool call was not run. ${NOT_IN_TIME}`);
  return denied(
    row,
    { by: 'hook', ...(hook === undefined ? {} : { hook }), ...(reason === undefined ? {} : { reason }) },
    `Denied by hook ${hook}${because(reason)}.`,
  );
}

/** What everybody is told of an approval that has expired. */
export const NOT_IN_TIME = 'The approval expired before a decision was made.';

/**
 * What hooks cause that were told of a question: the first that refuses has decided, if nobody was quicker. One that
 * fails refuses nothing, as a person is asked in any case.
 */
export function refusedWhileAsking(
  context: SessionContext,
  consult: OpenConsult,
  { answers }: ConsultOutcome,
): SessionEvent[] {
  const callId = consult.payload.call_id as string;
  if (context.aborting || q.callRow(context, callId)?.status !== 'parked') return [];
  for (const { hook, verdict } of answers) {
    if (verdict?.kind !== 'deny') continue;
    const { reason } = verdict;
    return [
      { type: 'hook_vetoed', hook, point: 'OnApprovalRequested', call_id: callId, decision: 'deny', reason },
      { type: 'approval_decided', call_id: callId, decision: 'deny', hook, reason },
    ];
  }
  return [];
}

/** A question in a copy: its time begins anew, as the time since the last copied record is nobody's. */
export function parkedAfterCopy(row: CallRow, atMs: number): CallRow {
  return row.expiry ? { ...row, expiry: { ...row.expiry, due_at_ms: atMs + row.expiry.after_ms } } : row;
}
