/**
 * Edited calls: a person allows a parked call with other arguments. The edited call must pass the rules that deny (of
 * the persona, the start, ancestor sessions, the host's policy) and `PreToolUse` hooks. A remembered rule that denies
 * counts only if these rules say `ask` (`rulingOn`, calls/ruling.ts). `gate_tool_calls` and `permission_asked` hooks are
 * not called again. The host has validated the arguments against the tool's schema, if the session still has the tool
 * (`withValidArguments` in libs/session, check-command.ts).
 *
 * EDIT-1  An edit is not a decision. While hooks check it the call stays parked, and the first decision wins
 *     (APPROVAL-2, approvals.ts).
 * EDIT-2  The record with the hooks' answers contains the decision, or the rejection of the edit. After a rejection by
 *     rules or hooks the call is still parked, and people may decide again.
 * EDIT-3  The approved arguments are the ones that run. A hook that would rewrite them refuses the edit instead.
 * EDIT-4  If the wait for the approval ends before the hooks have answered, the edit is rejected in the same record.
 */

import {
  BOUNDS,
  canonicalJson,
  type Denial,
  type ErrorCode,
  type EventOf,
  type HookAnswer,
  type HookRegistration,
  type Json,
  type JsonObject,
  redactArgs,
  type SessionEvent,
} from '@coxswain/protocol';
import type { Command } from '../../core/commands.ts';
import type { SessionContext } from '../../core/context.ts';
import {
  actorMember,
  controlOutcome,
  type Decision,
  events,
  reasonMember,
  reasonSuffix,
  reject,
  rejected,
  withOutcome,
} from '../../core/decision.ts';
import { rulingOn } from '../calls/ruling.ts';
import type { CallRow, ProposedEdit } from '../calls/state.ts';
import { callRow, noteOnCall, toolPayload } from '../calls/table.ts';
import { buildHookDecision, failsClosed } from '../hooks/answers.ts';
import { hooksFor, isAsking, payloadHead, recordedPayload } from '../hooks/consult.ts';
import type { OpenConsult } from '../hooks/state.ts';
import { textBytes } from '../injections/waiting.ts';
import { alreadyDecided, settleApproval } from './approvals.ts';
import { rememberedBy } from './remembered.ts';

const POINT = 'PreToolUse';

/** An open consult of hooks about an edited call. */
export type EditConsult = OpenConsult & { readonly call_id: string; readonly command_id: string };

/** Whether a consult is about an edited call. */
export function isOfEdit(consult: OpenConsult): consult is EditConsult {
  return consult.point === POINT && consult.command_id !== undefined;
}

/**
 * Decides an `approve` with an edit of a parked call, in a record made at `atMs`.
 * @returns the events of the decision if no hook applies; `edited_call_proposed` if hooks must check the call; a
 * rejection; or `ignored` for a repetition of the command whose edit hooks are already checking.
 */
export function decideEdit(
  context: SessionContext,
  input: Command<'approve'>,
  row: CallRow,
  args: JsonObject,
  atMs: number,
): Decision {
  const { edit, call_id } = row;
  if (edit?.command_id === input.command_id) return { kind: 'ignored', reason: 'hooks are already checking this edit' };
  if (edit)
    return reject(
      input,
      'edit_pending',
      `hooks are still checking another edit of call ${call_id}; retry the decision in a moment`,
      {
        field: 'args',
      },
    );
  const refused = refusedBySize(context, input, row, args) ?? refusedByRule(context, input, row, args);
  if (refused) return refused;
  if (hooksOn(context, row, args).length === 0) return settleApproval(context, input, row, args, atMs);
  const remembered = rememberedBy(context, input, row, args, atMs);
  if ('kind' in remembered) return remembered;
  const { command_id } = input;
  const { remember } = input.body;
  return events({
    type: 'edited_call_proposed',
    call_id,
    command_id,
    args,
    ...(remember === undefined ? {} : { remember }),
    ...actorMember(input),
    ...reasonMember(input.body.reason),
  });
}

/**
 * The rejection of an edit beyond the bound on the arguments of a batch, or null. The bound also applies to edited
 * arguments, because the context and its snapshots contain them.
 */
function refusedBySize(
  { calls }: SessionContext,
  input: Command<'approve'>,
  row: CallRow,
  args: JsonObject,
): Decision | null {
  const argsOfBatch = calls.map((other) => (other === row ? args : (other.edit?.args ?? other.args)));
  const bytes = argsOfBatch.reduce<number>((sum, one) => sum + textBytes(canonicalJson(one)), 0);
  if (bytes <= BOUNDS.batchArgsMaxBytes) return null;
  const message = `with this edit the arguments of the batch have ${bytes} bytes; the limit is ${BOUNDS.batchArgsMaxBytes}`;
  return reject(input, 'body_too_large', message, { field: 'args' });
}

function refusedByRule(context: SessionContext, input: Command<'approve'>, row: CallRow, args: Json): Decision | null {
  const { action, rule } = rulingOn(context, { ...row, args });
  return action === 'deny' ? denyEdit(input, row, { by: 'rule', rule }, `permission rule ${rule} denies it`) : null;
}

function denyEdit(
  input: Command<'approve'>,
  { call_id }: CallRow,
  detail: Pick<Denial, 'by' | 'rule' | 'hook' | 'reason' | 'args'>,
  cause: string,
): Decision {
  const message = `the edited call was not run: ${cause}; call ${call_id} still waits for approval`;
  return reject(input, 'edited_call_denied', message, { field: 'args', detail: detail as unknown as JsonObject });
}

/**
 * The `hook_call` of the next hook that checks an edited call. If the hook table changed while the
 * edit waited for another consult, and no hook applies now, the rejection of the edit. Otherwise null.
 * @param effectId the id of the record's next effect.
 */
export function consultEditedCall(context: SessionContext, effectId: string): SessionEvent | null {
  const { consult } = context;
  if (consult !== null && !(isOfEdit(consult) && isAsking(context))) return null;
  const row = context.calls.find(({ status, edit }) => status === 'parked' && edit !== undefined);
  if (!row?.edit) return null;
  const { command_id, args } = row.edit;
  const hook = hooksOn(context, row, args)[consult?.hooks.length ?? 0];
  if (!hook)
    return consult
      ? null
      : rejectionOf(row.edit, 'edit_pending', 'the hooks changed in the meantime; retry the decision');
  const payload = consult?.payload ?? payloadOf(context, row, args);
  const { call_id } = row;
  return {
    type: 'hook_call',
    hook: hook.id,
    point: POINT,
    effect_id: consult?.effect_id ?? effectId,
    call_id,
    command_id,
    ...recordedPayload(consult, payload),
  };
}

function hooksOn(context: SessionContext, row: CallRow, args: JsonObject): readonly HookRegistration[] {
  return hooksFor(context, POINT, row.tool, payloadOf(context, row, args));
}

function payloadOf(context: SessionContext, row: CallRow, args: JsonObject): JsonObject {
  return { ...payloadHead(context, POINT), tool: toolPayload({ ...row, args }) };
}

/** Whether a consult is about an edit that was rejected meanwhile (EDIT-4): the answers change nothing. */
export function isEditSettled(context: SessionContext, consult: OpenConsult): boolean {
  return isOfEdit(consult) && callRow(context, consult.call_id)?.edit?.command_id !== consult.command_id;
}

/**
 * The events of the hooks' answers about an edited call: `hook_vetoed` if a hook refuses, the decision about the call or the
 * rejection of the edit, and last `edited_call_checked`. If the call no longer waits, only `edited_call_checked`.
 */
export function decideEditChecked(
  context: SessionContext,
  consult: EditConsult,
  answers: readonly HookAnswer[],
  atMs: number,
): SessionEvent[] {
  const { effect_id, command_id, call_id } = consult;
  const checked: SessionEvent = { type: 'edited_call_checked', call_id, command_id, effect_id };
  const row = callRow(context, call_id);
  const edit = row?.edit;
  if (!row || !edit || isEditSettled(context, consult) || row.status !== 'parked') return [checked];
  const input = commandOf(row, edit);
  const refusal = refusalIn(context, answers, edit);
  const decision = refusal
    ? denyEdit(input, row, { by: 'hook', ...refusal }, `hook ${refusal.hook} denies it${reasonSuffix(refusal.reason)}`)
    : (refusedByRule(context, input, row, edit.args) ?? settleApproval(context, input, row, edit.args, atMs));
  const about = { callId: call_id, commandId: command_id };
  const vetoed = refusal ? [buildHookDecision(POINT, refusal.hook, 'deny', refusal.reason, about)] : [];
  const withControl = withOutcome(context.session_id, input, decision);
  return [...vetoed, ...('events' in withControl ? withControl.events : []), checked];
}

/** The `approve` that proposed an edit, rebuilt with the members that a decision needs. */
function commandOf(
  { call_id }: CallRow,
  { command_id, args, actor, reason, remember }: ProposedEdit,
): Command<'approve'> {
  return {
    type: 'command',
    verb: 'approve',
    command_id,
    body: {
      call_id,
      decision: 'allow',
      args,
      ...(reason === undefined ? {} : { reason }),
      ...(remember === undefined ? {} : { remember }),
    },
    ...(actor ? { actor } : {}),
  };
}

type HookRefusal = Pick<Denial, 'reason' | 'args'> & { readonly hook: string };

function refusalIn(
  context: SessionContext,
  answers: readonly HookAnswer[],
  { args }: ProposedEdit,
): HookRefusal | null {
  for (const answer of answers) {
    const { hook, verdict, failure } = answer;
    if (failsClosed(context, answer)) return { hook, ...reasonMember(failure?.message) };
    if (verdict?.kind === 'deny') return { hook, reason: verdict.reason };
    if (verdict?.kind === 'rewrite_args' && canonicalJson(verdict.args) !== canonicalJson(args))
      return { hook, reason: REWRITES, args: redactArgs(verdict.args) };
  }
  return null;
}

const REWRITES = 'it would change the approved arguments';

/**
 * The next event that ends an edit, if its call no longer waits (EDIT-4) or the edit was rejected because the hooks
 * changed. First it is the rejection of the edit. Once that is recorded, it is the outcome of its command, then null.
 */
export function editEnd({ calls, session_id }: SessionContext): SessionEvent | null {
  const row = calls.find(({ edit, status }) => edit && (edit.rejected !== undefined || status !== 'parked'));
  if (!row?.edit) return null;
  const { edit } = row;
  const input = commandOf(row, edit);
  if (edit.rejected !== undefined) return controlOutcome(session_id, input, edit.rejected);
  if (row.decided) return alreadyDecided(input, row.decided).events[0];
  return rejectionOf(edit, 'not_pending', `call ${row.call_id} no longer has a pending approval`);
}

function rejectionOf({ command_id }: ProposedEdit, code: 'edit_pending' | 'not_pending', message: string) {
  const field = code === 'not_pending' ? 'call_id' : 'args';
  return rejected({ command_id, verb: 'approve' }, code, message, { field });
}

/** The call table after an edit was proposed. */
export function editProposed(
  context: SessionContext,
  { call_id, command_id, args, actor, reason, remember }: EventOf<'edited_call_proposed'>,
): Pick<SessionContext, 'calls'> {
  return noteOnCall(context, call_id, { edit: { command_id, args, actor, reason, remember } });
}

/**
 * The call table after the rejection of an edit, which marks the edit as rejected, or after the outcome of its command,
 * which removes the edit.
 */
export function editAnswered(
  context: SessionContext,
  event: EventOf<'command_rejected'> | EventOf<'control_outcome'>,
): Partial<SessionContext> {
  const row = context.calls.find(({ edit }) => edit?.command_id === event.command_id);
  if (!row?.edit) return {};
  const edit = event.type === 'command_rejected' ? { ...row.edit, rejected: event.code as ErrorCode } : undefined;
  return noteOnCall(context, row.call_id, { edit });
}
