/** Decides `approve`, and what became of telling somebody outside that a call waits. */
import type { CommandInput, JsonObject, NoticeOutcome, SessionEvent } from '@coxswain/protocol';
import { NOT_IN_TIME } from './approvals.ts';
import type { CallDecision, CallRow, SessionContext } from './context.ts';
import { by, type Decision, events, late, why } from './decision.ts';
import { decideEdit, editedArgs } from './edited-calls.ts';
import * as q from './queries.ts';
import { controlOutcome, reject } from './rejection.ts';
import { rememberedBy } from './remembered.ts';
import { isEnded, type SessionState } from './state.ts';

/** Decides `approve`, in a record that is made at `atMs`. */
export function decideApproval(state: SessionState, input: CommandInput, atMs: number): Decision {
  const { context } = state;
  const callId = input.body.call_id as string;
  const row = q.callRow(context, callId);
  if (isEnded(state))
    return reject(input, 'not_pending', 'the run has ended; no approval is pending', { field: 'call_id' });
  if (!row) return reject(input, 'call_unknown', `there is no call ${callId} in the open batch`, { field: 'call_id' });
  if (row.decided) return alreadyDecided(input, row.decided);
  if (row.status !== 'parked') {
    return reject(input, 'not_pending', `call ${callId} has no pending approval: it is ${row.ended ?? row.status}`, {
      field: 'call_id',
    });
  }
  const args = editedArgs(input, row);
  return args ? decideEdit(context, input, row, args, atMs) : settleApproval(context, input, row, undefined, atMs);
}

/**
 * A person's decision on a parked call, with what is remembered of it.
 * @param args the arguments as the approver has edited them, where that is so.
 * @param atMs when the record is made, milliseconds since 1970.
 */
export function settleApproval(
  context: SessionContext,
  input: CommandInput,
  row: CallRow,
  args: JsonObject | undefined,
  atMs: number,
): Decision {
  const decision = input.body.decision as 'allow' | 'deny';
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
  input: CommandInput,
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
