/**
 * `decide` handles every input: it returns the events that the input causes directly, rejects a command with a
 * catalogued code, asks the host to delete the session, or ignores an input that has no effect, such as a late or
 * repeated one. `next` derives the events that follow. Which rejections get a record: session-intake.ts in libs/session.
 *
 * DECIDE-1  A repetition of a remembered command changes nothing. Its receipt repeats the first outcome.
 * DECIDE-2  An outcome counts only while the effect with its id is open.
 */

import { assertNever, BOUNDS, type CommandInput, type Input } from '@coxswain/protocol';
import { isEnded, type MachineState, topStateOf } from '../machine/state.ts';
import { decideApprovalNoticeOutcome } from '../slices/approvals/approvals.ts';
import { decideApproval } from '../slices/approvals/approve.ts';
import { decideRevokeRule } from '../slices/approvals/remembered.ts';
import { decideCancelCall } from '../slices/calls/cancel.ts';
import {
  decideCall,
  decideCallAccepted,
  decideCallOutcome,
  withEditedFiles,
  withRealDuration,
} from '../slices/calls/outcome.ts';
import {
  decideCancelChild,
  decideChildEnded,
  decideMessage,
  decideParentReportOutcome,
  decideStartChild,
} from '../slices/children/children.ts';
import { decideCompact } from '../slices/compaction/compaction.ts';
import { decideHooksChanged } from '../slices/hooks/consult.ts';
import { decideConsult } from '../slices/hooks/consult-outcome.ts';
import { decideFeedbackCommand } from '../slices/hooks/jobs.ts';
import { decideFeedback } from '../slices/injections/feedback.ts';
import { decideInjection, decideReplace, decideRevoke } from '../slices/injections/queue.ts';
import { decideCancel, decideSessionFailed } from '../slices/runs/ending.ts';
import { decideModel } from '../slices/runs/model-answers.ts';
import { decideOwned } from '../slices/runs/owners.ts';
import { decideProvision } from '../slices/runs/provision.ts';
import { decidePrompt, decidePromptOrSteer, decideStart } from '../slices/runs/run-starts.ts';
import { decideStop } from '../slices/runs/stop-conditions.ts';
import { decidePersonaStep } from '../slices/steps/persona-waits.ts';
import { decideResume, decideSignal, decideSuspend, withoutInvalidSuspension } from '../slices/suspension/requests.ts';
import { isTooOld, outcomeOfCommand } from './command-memory.ts';
import { type Command, typedCommand } from './commands.ts';
import { type Decision, events, late, reject, withOutcome } from './decision.ts';
import { openEffectIds } from './effects.ts';
import { decideTimer } from './timers.ts';

/**
 * Decides one input. Pure.
 * @param atMs the time of the input's record, milliseconds since 1970.
 */
export function decide(state: MachineState, input: Input, atMs: number): Decision {
  switch (input.type) {
    case 'command':
      return decideCommand(state, input, atMs);
    case 'provision_outcome':
      return decideProvision(state.context, input);
    case 'model_outcome':
      return decideModel(state.context, input);
    case 'compact_outcome':
      return decideCompact(state.context, input);
    case 'call_outcome':
      return withEditedFiles(
        input,
        decideCall(
          state.context,
          withRealDuration(state.context, withoutInvalidSuspension(state.context, input, atMs), atMs),
        ),
      );
    case 'call_accepted':
      return decideCallAccepted(state.context, input);
    case 'consult_outcome':
      return decideConsult(state.context, input, atMs);
    case 'close_outcome':
      if (state.context.closing?.id !== input.effect_id) return late(input.effect_id);
      return events({ type: 'tools_closed', effect_id: input.effect_id, notes: input.notes });
    case 'stop_outcome':
      return decideStop(state.context, input);
    case 'notify_outcome':
      return decideParentReportOutcome(state.context, input);
    case 'notice_outcome':
      return decideApprovalNoticeOutcome(state.context, input);
    case 'owned':
      return decideOwned(state, input);
    case 'hooks_changed':
      return decideHooksChanged(state, input);
    case 'feedback':
      return decideFeedback(state.context, input);
    case 'persona_step':
      return decidePersonaStep(state.context, input);
    case 'session_failed':
      return decideSessionFailed(state, input);
    case 'timer':
      return decideTimer(state, input);
    default:
      return assertNever(input);
  }
}

function decideCommand(state: MachineState, input: CommandInput, atMs: number): Decision {
  const { context } = state;
  const previously = outcomeOfCommand(context, input.command_id);
  if (previously !== undefined) return { kind: 'ignored', reason: 'repeated command', previously };
  if (context.run === 0 && input.verb !== 'start' && input.verb !== 'start_child' && !input.problem)
    return reject(input, 'session_not_found', 'there is no such session');
  return withOutcome(context.session_id, input, decideVerb(state, input, atMs));
}

/**
 * Decides a command by its verb. After the end of a run:
 * - `prompt` starts the next run, and so does `message` with the mode `prompt`. While the report to the parent is open, a
 *   `prompt` is rejected, unless it has `if_running: steer`; that one and the `message` are queued.
 * - Other messages, `steer`, `remind` and `followup` are queued. `revoke` and `replace` apply as during a run.
 * - `delete` applies once no effect is open; `feedback` and `child_ended` while their job or child is open.
 * - `cancel_call` has the outcome `not_found`. All others are rejected.
 */
function decideVerb(state: MachineState, input: CommandInput, atMs: number): Decision {
  const { context } = state;
  if (isTooOld(context, input.command_id, atMs)) {
    return reject(
      input,
      'command_too_old',
      `the id ${input.command_id} is older than the last ${BOUNDS.commandIdsRemembered} command ids, which the session remembers`,
    );
  }
  if (input.problem) return reject(input, input.problem.code, input.problem.message, { field: input.problem.field });
  const command = typedCommand(input);
  switch (command.verb) {
    case 'start':
      return decideStart(state, command);
    case 'prompt':
      return command.body.if_running === 'steer'
        ? decidePromptOrSteer(state, command, atMs)
        : decidePrompt(state, command);
    // Queued in every state, also during a suspension. Only the bounds of queues and reminders reject one.
    case 'steer':
    case 'remind':
    case 'followup':
      return decideInjection(context, command, atMs);
    case 'approve':
      return decideApproval(state, command, atMs);
    case 'cancel':
      return decideCancel(state, command);
    case 'cancel_call':
      return decideCancelCall(state, command);
    case 'call_outcome':
      return decideCallOutcome(state, command);
    case 'start_child':
      return decideStartChild(state, command);
    case 'cancel_child':
      return decideCancelChild(state, command);
    case 'child_ended':
      return decideChildEnded(state, command, atMs);
    case 'message':
      return decideMessage(state, command, atMs);
    case 'feedback':
      return decideFeedbackCommand(context, command);
    case 'suspend':
      return decideSuspend(state, command, atMs);
    case 'resume':
      return decideResume(state, command);
    case 'revoke':
      return decideRevokeRule(context, command, atMs) ?? decideRevoke(context, command);
    case 'replace':
      return decideReplace(context, command);
    case 'signal':
      return decideSignal(state, command);
    case 'delete':
      return decideDelete(state, command);
    default:
      return reject(input, 'not_yet_available', `this release does not support ${input.verb} yet`, { field: 'verb' });
  }
}

/**
 * A deletion causes no event, because it ends the journal: the host appends a tombstone. It is rejected during a run, and
 * while effects are open.
 */
function decideDelete(state: MachineState, input: Command<'delete'>): Decision {
  if (!isEnded(state))
    return reject(input, 'session_busy', `the session is ${topStateOf(state)}; cancel its run, then delete it`);
  // The outcome of an open effect, such as the report to the parent, would arrive at a deleted session.
  if (openEffectIds(state).length > 0)
    return reject(
      input,
      'session_busy',
      'work after the end of the run is still in progress; retry the deletion in a moment',
    );
  return { kind: 'deletion' };
}
