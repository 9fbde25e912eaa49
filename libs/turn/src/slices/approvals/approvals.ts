/**
 * Calls that wait for a person: what goes on beside the wait, and how it ends without one.
 *
 * A1  A wait costs nothing: beside it stands a timer where it expires, and an effect until somebody outside was told of it.
 * A2  The first decision wins, whoever makes it: a person, a hook that was told of it, or time.
 * A3  Nobody is told of a wait twice in one life of it, and nothing waits for the telling.
 */
import type { ConsultOutcome, EventOf, JsonObject, NoticeOutcome, SessionEvent } from '@coxswain/protocol';
import { remember } from '../../core/command-memory.ts';
import type { Command } from '../../core/commands.ts';
import type { SessionContext } from '../../core/context.ts';
import { because, by, controlOutcome, type Decision, events, late, reject, why } from '../../core/decision.ts';
import type { Effect, TimerEffect } from '../../core/effect.ts';
import { nextIndex, type Placed, type PlacedEvent } from '../../core/place.ts';
import { buildCallDenied, endedUnknown } from '../calls/results.ts';
import { parked, released, type Wait, waitDropped } from '../calls/rungs.ts';
import type { CallAt, CallDecision, CallRow } from '../calls/state.ts';
import { callRow, changeCall } from '../calls/table.ts';
import type { OpenConsult } from '../hooks/state.ts';
import { interruptWaits } from '../injections/waiting.ts';
import { rememberedBy } from './remembered.ts';

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
export function waitsOf(context: SessionContext, event: Asked & PlacedEvent): Wait {
  const { epoch } = context;
  const index = nextIndex(context, event);
  const after_ms = event.expire_after_ms;
  const expires = after_ms !== undefined;
  return {
    requested_by: event.requested_by,
    asked_at_ms: event.at_ms,
    ...(expires ? { expiry: { id: `${event.n}-${index}`, epoch, after_ms, due_at_ms: event.at_ms + after_ms } } : {}),
    ...(event.notifies ? { notice: { id: `${event.n}-${index + Number(expires)}`, epoch } } : {}),
  };
}

/** The decision that an event states, as its row keeps it. Expired is as good as refused. */
function decisionIn({ decision, actor, reason, hook }: EventOf<'approval_decided'>): CallDecision {
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
  if (expired)
    return buildCallDenied(row, { by: 'expiry', reason: NOT_IN_TIME }, `The tool call was not run. ${NOT_IN_TIME}`);
  return buildCallDenied(
    row,
    { by: 'hook', ...(hook === undefined ? {} : { hook }), ...(reason === undefined ? {} : { reason }) },
    `Denied by hook ${hook}${because(reason)}.`,
  );
}

/** What everybody is told of an approval that has expired. */
const NOT_IN_TIME = 'The approval expired before a decision was made.';

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
  if (context.aborting || callRow(context, callId)?.status !== 'parked') return [];
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
export function parkedAfterCopy(row: CallAt<'parked'>, atMs: number): CallRow {
  return row.expiry ? { ...row, expiry: { ...row.expiry, due_at_ms: atMs + row.expiry.after_ms } } : row;
}

/** What asks for a person about such a call. */
export const UNKNOWN_OUTCOME = 'unknown_outcome';

/** The question. */
export const UNKNOWN_QUESTION =
  'The outcome of this tool call is unknown: the host or process that ran it stopped responding. ' +
  'Allow to re-run it. Deny to report the unknown outcome to the model.';

/** Whether a person is to be asked about a call that came back as interrupted. An interrupt that waits answers for them. */
export function asksAboutUnknown(context: SessionContext, row: CallRow): boolean {
  const stopped = context.aborting || row.cancel || row.preempted;
  return context.pinned?.asks_unknown === true && !stopped && !interruptWaits(context);
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

/**
 * A person's decision on a parked call, with what is remembered of it.
 * @param args the arguments as the approver has edited them, where that is so.
 * @param atMs when the record is made, milliseconds since 1970.
 */
export function settleApproval(
  context: SessionContext,
  input: Command<'approve'>,
  row: CallRow,
  args: JsonObject | undefined,
  atMs: number,
): Decision {
  const { decision } = input.body;
  const remembered = rememberedBy(context, input, row, args ?? row.args, atMs);
  if ('kind' in remembered) return remembered;
  const outcome: SessionEvent = {
    ...controlOutcome(context.session_id, input, decision === 'allow' ? 'allowed' : 'denied'),
    tool: row.tool,
    ...why(input.body.reason),
  };
  const decided: SessionEvent = {
    type: 'approval_decided',
    call_id: row.call_id,
    decision,
    command_id: input.command_id,
    ...by(input),
    ...why(input.body.reason),
    ...(args ? { args } : {}),
  };
  return events(...remembered, decided, outcome);
}

/** The rejection of a decision that came after another one. */
export function alreadyDecided(
  input: Command<'approve'>,
  { decision, actor, hook, expired }: CallDecision,
): Extract<Decision, { kind: 'rejected' }> {
  const who = expired ? 'expiry' : hook === undefined ? (actor?.name ?? 'someone') : `hook ${hook}`;
  const message = expired ? NOT_IN_TIME : `${who} already decided this call: ${decision}`;
  return reject(input, 'already_decided', message, { field: 'call_id', detail: { by: who, decision } });
}

/** Decides what became of a notice. */
export function decideNotice(context: SessionContext, outcome: NoticeOutcome): Decision {
  const { type: _, ...rest } = outcome;
  const row = context.calls.find(({ notice, status }) => status === 'parked' && notice?.id === outcome.effect_id);
  return row ? events({ type: 'approval_notified', call_id: row.call_id, ...rest }) : late(outcome.effect_id);
}

/** A parked call has its decision, or waits no more. */
export function approvalDecided(context: SessionContext, event: EventOf<'approval_decided'>): Partial<SessionContext> {
  const remembered = event.command_id ? remember(context, event.command_id) : {};
  if (event.decision === 'superseded' || event.decision === 'aborted') {
    return { ...changeCall(context, event.call_id, waitDropped), ...remembered };
  }
  const decision = decisionIn(event);
  return { ...changeCall(context, event.call_id, (row) => released(row, decision, event.args)), ...remembered };
}

/** A call waits for a person. */
export function approvalRequested(
  context: SessionContext,
  event: Placed<'approval_requested'>,
): Partial<SessionContext> {
  const wait = waitsOf(context, event);
  return {
    ...changeCall(context, event.call_id, (row) => parked(row, wait)),
    next_effect: nextIndex(context, event) + waitCount(event),
  };
}
