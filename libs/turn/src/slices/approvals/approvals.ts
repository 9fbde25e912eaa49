/**
 * Calls that wait for a human approval: the timer and the notification of the wait, and its end, with or without a
 * decision. approve.ts decides the command `approve`. `rulingOn` (calls/ruling.ts) decides whether a call needs an
 * approval.
 *
 * APPROVAL-1  The expiry of a wait for an approval is a timer: `expire_after_ms` of the run's permissions gives its
 *     time. Without it the call waits until it is decided or ends otherwise. The notification of a wait is an effect
 *     until its outcome is recorded.
 * APPROVAL-2  The first decision wins: of a person, of an OnApprovalRequested hook, or by expiry. An `allow` leads to
 *     the call status `allowed`. A denial or an expiry leads to `proposed` with the decision, and the call then ends as
 *     `denied`, or as `interrupted` if its outcome is unknown.
 * APPROVAL-3  Each wait has at most one notification, and nothing waits for its outcome. The next owner of the session
 *     may send it again with the same key.
 */
import type { ApprovalNoticeOutcome, ConsultOutcome, EventOf, JsonObject, SessionEvent } from '@coxswain/protocol';
import { noteCommand } from '../../core/command-memory.ts';
import type { Command } from '../../core/commands.ts';
import type { SessionContext } from '../../core/context.ts';
import {
  actorMember,
  controlOutcome,
  type Decision,
  events,
  late,
  reasonMember,
  reasonSuffix,
  reject,
} from '../../core/decision.ts';
import type { Effect, TimerEffect } from '../../core/effect.ts';
import { nextIndex, type Placed, type PlacedEvent } from '../../core/journal-place.ts';
import { buildCallDenied, buildCallInterrupted } from '../calls/results.ts';
import { decideRow, parkRow, unparkRow, type Wait } from '../calls/row-changes.ts';
import type { CallAt, CallDecision, CallRow } from '../calls/state.ts';
import { callRow, changeCall } from '../calls/table.ts';
import { buildHookDecision } from '../hooks/answers.ts';
import type { OpenConsult } from '../hooks/state.ts';
import { interruptWaits } from '../injections/waiting.ts';
import { rememberedBy } from './remembered.ts';

type Asked = EventOf<'approval_requested'>;

/** The members of each approval request that the settings of the run determine. */
export function approvalSettings({ pinned }: SessionContext): Pick<Asked, 'expire_after_ms' | 'notifies'> {
  const after = pinned?.permissions.expire_after_ms;
  return {
    ...(after === undefined ? {} : { expire_after_ms: after }),
    ...(pinned?.notifies ? { notifies: true as const } : {}),
  };
}

/**
 * The number of effects of an approval request, for their ids (EFFECT-1, core/journal-place.ts): the timer of its expiry, then the
 * notification, each if there is one.
 */
export function approvalEffectCount({ expire_after_ms, notifies }: Asked): number {
  return Number(expire_after_ms !== undefined) + Number(notifies === true);
}

/** The members that a row gets when its call starts to wait for an approval. */
export function waitOf(context: SessionContext, event: Asked & PlacedEvent): Wait {
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

/** The decision in an event, in the form of the call's row. Expiry counts as a denial. */
function decisionIn({ decision, actor, reason, hook }: EventOf<'approval_decided'>): CallDecision {
  return {
    decision: decision === 'allow' ? 'allow' : 'deny',
    actor,
    reason,
    ...(hook === undefined ? {} : { hook }),
    ...(decision === 'expired' ? { expired: true as const } : {}),
  };
}

/** The timers of parked calls whose approvals can expire. None in an aborting run, whose teardown ends these calls. */
export function approvalTimers({ calls, aborting }: SessionContext): readonly TimerEffect[] {
  if (aborting) return NONE;
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

const NONE: readonly [] = [];

/** The `notify` effects of parked calls, each until its outcome is recorded; none in an aborting run. */
export function approvalNoticeEffects({ calls, aborting }: SessionContext): readonly Effect[] {
  if (aborting) return NONE;
  return calls.flatMap(({ status, notice, call_id }) =>
    status === 'parked' && notice ? [{ kind: 'notify', ...notice, abort: null, callId: call_id }] : [],
  );
}

/** The event after the expiry of an approval, in addition to `timer_fired`: one, or none if no call waits with this timer. */
export function afterApprovalExpiry({ calls }: SessionContext, timerId: string): SessionEvent[] {
  const row = calls.find(({ expiry, status }) => status === 'parked' && expiry?.id === timerId);
  return row ? [{ type: 'approval_decided', call_id: row.call_id, decision: 'expired' }] : [];
}

/** The end of a call whose approval expired, or was denied by an OnApprovalRequested hook. */
export function buildDenialByHookOrExpiry(row: CallRow, { hook, reason, expired }: CallDecision): SessionEvent {
  if (row.in_doubt)
    return buildCallInterrupted(row, expired ? NOT_IN_TIME : `Hook ${hook} denied a re-run${reasonSuffix(reason)}.`);
  if (expired)
    return buildCallDenied(row, { by: 'expiry', reason: NOT_IN_TIME }, `The tool call was not run. ${NOT_IN_TIME}`);
  return buildCallDenied(
    row,
    { by: 'hook', ...(hook === undefined ? {} : { hook }), ...(reason === undefined ? {} : { reason }) },
    `Denied by hook ${hook}${reasonSuffix(reason)}.`,
  );
}

/** The message of an expired approval, for people and the model. */
const NOT_IN_TIME = 'The approval expired before a decision was made.';

/**
 * The events after OnApprovalRequested hooks: the first hook that denies decides. There are none if the call no longer
 * waits, or if the run is aborting. A failed hook denies nothing, because the approval still waits for a person or its
 * expiry.
 */
export function afterOnApprovalRequested(
  context: SessionContext,
  consult: OpenConsult,
  { answers }: ConsultOutcome,
): SessionEvent[] {
  const callId = consult.payload.call_id as string;
  const row = callRow(context, callId);
  // The call can have been allowed, and be parked again for its unknown outcome: the hooks were not asked about that.
  const isSameRequest = row?.status === 'parked' && row.requested_by === consult.payload.requested_by;
  if (context.aborting || !isSameRequest) return [];
  for (const { hook, verdict } of answers) {
    if (verdict?.kind !== 'deny') continue;
    const { reason } = verdict;
    return [
      buildHookDecision('OnApprovalRequested', hook, 'deny', reason, { callId }),
      { type: 'approval_decided', call_id: callId, decision: 'deny', hook, reason },
    ];
  }
  return [];
}

/**
 * The row of a parked call in a copy: the full time until its expiry starts again at `atMs`. The time that passed
 * before does not count.
 */
export function parkedAfterCopy(row: CallAt<'parked'>, atMs: number): CallRow {
  return row.expiry ? { ...row, expiry: { ...row.expiry, due_at_ms: atMs + row.expiry.after_ms } } : row;
}

/** The `requested_by` of an approval for a call with an unknown outcome. */
export const UNKNOWN_OUTCOME = 'unknown_outcome';

/** The question of an approval for a call with an unknown outcome. */
export const UNKNOWN_QUESTION =
  'The outcome of this tool call is unknown: the host or process that ran it stopped responding. ' +
  'Allow to re-run it. Deny to report the unknown outcome to the model.';

/**
 * Whether a person must decide about a call with an unknown outcome: the persona has `on_unknown_outcome: ask`, the run
 * is not aborting, the call has no cancel and no preempting interrupt, and no interrupt is queued. Otherwise the call
 * ends as `interrupted`, or as `cancelled` after its cancel. Asked only about an outcome with the status `interrupted`: an
 * idempotent call that no process accepts any longer ends as `error` (calls/outcome.ts).
 */
export function mustAskAboutUnknown(context: SessionContext, row: CallRow): boolean {
  const stopped = context.aborting || row.cancel || row.preempted;
  return context.pinned?.asks_unknown === true && !stopped && !interruptWaits(context);
}

/** The event that parks a call with {@link UNKNOWN_QUESTION}. */
export function buildUnknownRequest(context: SessionContext, { call_id, tool, args }: CallRow): SessionEvent {
  return {
    type: 'approval_requested',
    call_id,
    tool,
    args,
    requested_by: UNKNOWN_OUTCOME,
    question: UNKNOWN_QUESTION,
    ...approvalSettings(context),
  };
}

/**
 * Decides a parked call as a person has decided it, and remembers the rule if the command says so.
 * @param args the arguments as edited by the approver, if edited.
 * @param atMs the time of the record, milliseconds since 1970.
 * @returns the events; or the rejection, if the decision cannot be remembered.
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
    ...reasonMember(input.body.reason),
  };
  const decided: SessionEvent = {
    type: 'approval_decided',
    call_id: row.call_id,
    decision,
    command_id: input.command_id,
    ...actorMember(input),
    ...reasonMember(input.body.reason),
    ...(args ? { args } : {}),
  };
  return events(...remembered, decided, outcome);
}

/** Rejects an `approve` for a call that is already decided. */
export function alreadyDecided(
  input: Command<'approve'>,
  { decision, actor, hook, expired }: CallDecision,
): Extract<Decision, { kind: 'rejected' }> {
  const who = expired ? 'expiry' : hook === undefined ? (actor?.name ?? 'someone') : `hook ${hook}`;
  const message = expired ? NOT_IN_TIME : `${who} already decided this call: ${decision}`;
  return reject(input, 'already_decided', message, { field: 'call_id', detail: { by: who, decision } });
}

/** Decides the outcome of a notification. */
export function decideApprovalNoticeOutcome(context: SessionContext, outcome: ApprovalNoticeOutcome): Decision {
  const { type: _, ...rest } = outcome;
  const row = context.calls.find(({ notice, status }) => status === 'parked' && notice?.id === outcome.effect_id);
  return row ? events({ type: 'approval_notified', call_id: row.call_id, ...rest }) : late(outcome.effect_id);
}

/** A parked call was decided, or its wait ended without a decision. */
export function approvalDecided(context: SessionContext, event: EventOf<'approval_decided'>): Partial<SessionContext> {
  const noted = event.command_id ? noteCommand(context, event.command_id) : {};
  if (event.decision === 'superseded' || event.decision === 'aborted') {
    return { ...changeCall(context, event.call_id, unparkRow), ...noted };
  }
  const decision = decisionIn(event);
  return { ...changeCall(context, event.call_id, (row) => decideRow(row, decision, event.args)), ...noted };
}

/** A call waits for a human approval. */
export function approvalRequested(
  context: SessionContext,
  event: Placed<'approval_requested'>,
): Partial<SessionContext> {
  const wait = waitOf(context, event);
  return {
    ...changeCall(context, event.call_id, (row) => parkRow(row, wait)),
    next_effect: nextIndex(context, event) + approvalEffectCount(event),
  };
}
