/**
 * The events that the answers of a consult cause, by hook point: a dispatch table over the slices. Which hooks are called:
 * `nextConsultEvent` (consult.ts). Whether one answer refuses: `failsClosed` and `firstBlockOfMessage` (answers.ts).
 */

import { assertNever, BOUNDS, type ConsultOutcome, type SessionEvent } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { type Decision, events, late } from '../../core/decision.ts';
import type { AbortOrder, Effect } from '../../core/effect.ts';
import type { Placed } from '../../core/journal-place.ts';
import { afterOnApprovalRequested } from '../approvals/approvals.ts';
import { decideEditChecked, isEditSettled, isOfEdit } from '../approvals/edited-calls.ts';
import { cancelOrder } from '../calls/cancel.ts';
import {
  afterGate,
  afterOnHandoffEmitted,
  afterPermissionAsked,
  afterPostToolUse,
  afterPreToolUse,
} from '../calls/hooked.ts';
import { callRow } from '../calls/table.ts';
import { callConsulted } from '../calls/transitions.ts';
import { afterPreCompact } from '../compaction/compaction.ts';
import { afterMessageCheck, isMessageCheck } from '../injections/message-hooks.ts';
import { hookReminders } from '../reminders/hook-reminders.ts';
import { afterTransformContext, modelCallOpened } from '../runs/model-answers.ts';
import { afterUserPromptSubmit } from '../runs/run-starts.ts';
import { afterStepHooks } from '../steps/steps.ts';
import { afterPreSuspend } from '../suspension/requests.ts';
import { isAnnounced } from './announcements.ts';
import { answersOf, buildHookReturned } from './answers.ts';
import { deferredReports, untrackedJobs } from './jobs.ts';
import type { OpenConsult } from './state.ts';

/** Decides the outcome of the open consult. */
export function decideConsult(context: SessionContext, outcome: ConsultOutcome, atMs: number): Decision {
  const { consult } = context;
  if (consult?.effect_id !== outcome.effect_id) return late(outcome.effect_id);
  const row = consult.call_id === undefined ? undefined : callRow(context, consult.call_id);
  const isSettled = row?.cancel !== undefined || isEditSettled(context, consult);
  // A consult that the machine itself aborted: hooks without an answer have not failed.
  const wasAborted = outcome.status === 'cancelled' && (context.aborting || isSettled);
  const answers = wasAborted ? outcome.answers : answersOf(consult, outcome);
  return events(
    ...answers.map((answer) => buildHookReturned(consult, answer)),
    ...untrackedJobs(context, answers),
    ...deferredReports(context, consult, answers),
    ...hookReminders(context, consult, answers, atMs),
    ...eventsAtConsultEnd(context, consult, { ...outcome, answers }, atMs),
  );
}

/** The events at the end of a consult: what its answers cause at its point, and the event that ends it. */
function eventsAtConsultEnd(
  context: SessionContext,
  consult: OpenConsult,
  outcome: ConsultOutcome,
  atMs: number,
): SessionEvent[] {
  const { point, effect_id, call_id } = consult;
  if (isMessageCheck(consult)) return afterMessageCheck(context, consult, outcome);
  if (isOfEdit(consult)) return decideEditChecked(context, consult, outcome.answers, atMs);
  if (isAnnounced(point)) {
    const announced: SessionEvent = { type: 'announced', point, effect_id };
    return point === 'OnApprovalRequested'
      ? [announced, ...afterOnApprovalRequested(context, consult, outcome)]
      : [announced];
  }
  return [
    ...consequences(context, consult, outcome),
    { type: 'consult_ended', point, effect_id, ...(call_id === undefined ? {} : { call_id }) },
  ];
}

function consequences(context: SessionContext, consult: OpenConsult, outcome: ConsultOutcome): SessionEvent[] {
  const row = consult.call_id === undefined ? undefined : callRow(context, consult.call_id);
  // A call that ended during the consult, such as by a cancel, gets no events. A `returned` call that was cancelled is
  // still open: the end of its PostToolUse consult ends it.
  const open = row && row.status !== 'ended' ? row : undefined;
  switch (consult.point) {
    case 'session_start':
    case 'post_compact':
    case 'post_turn':
    case 'file_edited':
    case 'session_error':
    case 'session_end':
    case 'session_idle':
    case 'post_resume':
    case 'pre_finish':
    case 'on_unsettled_detected':
    case 'post_finish':
    case 'permission_replied':
    case 'loop_checkpoint':
    case 'OnApprovalRequested':
    case 'OnPersonaPaused':
    case 'OnPersonaResumed':
    case 'OnBudgetThreshold':
      return [];
    case 'PreStep':
    case 'PostStep':
      return context.aborting ? [] : afterStepHooks(context, consult.point, outcome);
    case 'OnHandoffEmitted':
      return open && !context.aborting ? afterOnHandoffEmitted(context, open, outcome) : [];
    case 'pre_suspend':
      return context.aborting ? [] : afterPreSuspend(context, outcome);
    case 'pre_compact':
      return context.aborting ? [] : afterPreCompact(context, outcome);
    case 'transform_context':
      return context.aborting ? [] : afterTransformContext(context, outcome);
    case 'user_prompt_submit':
      return context.aborting ? [] : afterUserPromptSubmit(context, outcome);
    case 'PreToolUse':
      return open && !context.aborting ? afterPreToolUse(context, open, outcome) : [];
    case 'gate_tool_calls':
      return context.aborting ? [] : afterGate(context, consult, outcome);
    case 'permission_asked':
      return open && !context.aborting ? afterPermissionAsked(context, open, outcome) : [];
    case 'PostToolUse':
      return open?.status === 'returned' ? afterPostToolUse(context, open, outcome) : [];
    default:
      return assertNever(consult.point);
  }
}

/**
 * A consult has ended. After transform_context hooks the model call opens, unless the run is aborting. Without such
 * hooks, the pass of the seam post_compact opens the model call (`seamPassed`, core/evolve-seams.ts).
 */
export function consultEnded(context: SessionContext, event: Placed<'consult_ended'>): Partial<SessionContext> {
  const { point, call_id } = event;
  if (point === 'transform_context' && !context.aborting) return { consult: null, ...modelCallOpened(context, event) };
  return {
    consult: null,
    ...(call_id ? callConsulted(context, call_id, point) : {}),
    ...(point === 'file_edited' ? { edited: context.edited.slice(1) } : {}),
  };
}

/** The order to abort a consult about an edited call whose wait for an approval has ended meanwhile. */
const SETTLED_ORDER: AbortOrder = { reason: 'the approval was decided', graceMs: BOUNDS.abortGraceMs };

/**
 * The effect of the open consult. It is aborted with the run, unless the run was already aborting when the consult was
 * opened. It is also aborted if the call whose result it checks was cancelled, or if the edited call that it checks no
 * longer waits for an approval.
 */
export function consultEffects(context: SessionContext, abort: AbortOrder | null): readonly Effect[] {
  const { consult } = context;
  if (!consult) return [];
  const { effect_id: id, epoch, point, call_id: callId, hooks, payload, of_end } = consult;
  const row = callId === undefined ? undefined : callRow(context, callId);
  const cancelled = row?.status === 'returned' && row.cancel ? cancelOrder(row.cancel) : null;
  const settled = isEditSettled(context, consult) ? SETTLED_ORDER : null;
  const order = cancelled ?? settled ?? (of_end ? null : abort);
  return [{ kind: 'consult', id, epoch, abort: order, point, callId, hooks, payload }];
}
