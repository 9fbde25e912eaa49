/**
 * The command `approve`: the decision about a parked call. Who may send it: `VERB_SCOPES` (services/gateway) and roles.ts
 * (libs/adapters/nats). Whether a call needs an approval: `rulingOn` (calls/ruling.ts). The host validates edited arguments
 * (`withValidArguments` in check-command.ts).
 */
import { canonicalJson, type JsonObject } from '@coxswain/protocol';
import type { Command } from '../../core/commands.ts';
import { type Decision, reject } from '../../core/decision.ts';
import { isEnded, type MachineState } from '../../machine/state.ts';
import type { CallRow } from '../calls/state.ts';
import { callRow } from '../calls/table.ts';
import { alreadyDecided, settleApproval } from './approvals.ts';
import { decideEdit } from './edited-calls.ts';

/**
 * Decides `approve`, in a record made at `atMs`. It is rejected unless the call is parked in a run that has not ended.
 * Further rejections: `decideEdit` for edited arguments, and `rememberedBy` for a rule to remember.
 */
export function decideApproval(state: MachineState, input: Command<'approve'>, atMs: number): Decision {
  const { context } = state;
  const callId = input.body.call_id;
  const row = callRow(context, callId);
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
 * The arguments of an `approve`.
 * @returns undefined if there are none, or if they are equal to those of the call.
 */
function editedArgs({ body }: Command<'approve'>, row: CallRow): JsonObject | undefined {
  const { args } = body;
  return args === undefined || canonicalJson(args) === canonicalJson(row.args) ? undefined : args;
}
