/**
 * `next`: the one derived event that follows from a state, or null if the machine waits for an input.
 *
 * NEXT-1  Results first: calls that a checkpoint skips get their results before its messages enter the transcript,
 *     because a provider rejects a user message between a call and its result. Calls that still run get their results
 *     later; the transcript moves the messages behind these results (`Transcript`, transcript.ts in libs/session).
 * NEXT-2  Steers and reminders leave the queue by a checkpoint, a command, or the answers of hooks. Of the derived
 *     events only a checkpoint takes one from the queue.
 * NEXT-3  One event at a time: the machine processes each before the next is derived.
 * NEXT-4  The order in {@link next}: first what earlier events require: `editEnd`, `nextOwedEvent`, `undeclaredStepEnd`,
 *     `nextChild` and `lapsedSuspension`. `editEnd` may precede results, because it adds nothing to the transcript. Then
 *     a reached threshold of a budget: at 100 percent the run ends, and no further consult or work may start before that.
 *     The exception is `nextChild`: the `call_started` of a delegation requires its `child_started`. Then
 *     `nextMessageCheck`, which precedes other consults (VERDICT-2, injections/message-hooks.ts). Then announcements, and
 *     last the state's own event.
 */

import type { SessionEvent } from '@coxswain/protocol';
import { leafOf, type MachineState } from '../machine/state.ts';
import { consultEditedCall, editEnd } from '../slices/approvals/edited-calls.ts';
import { nextThresholdEvent } from '../slices/budgets/budgets.ts';
import {
  consultCall,
  consultEditedFile,
  consultGate,
  endCallNotInFlight,
  nextBatchEvent,
  nextToAskHooks,
  nextToVet,
  refuseMalformed,
  skippedResult,
} from '../slices/calls/batch.ts';
import { nextChild } from '../slices/children/delegation.ts';
import { compactionPayload, nextCompactionEvent } from '../slices/compaction/compaction.ts';
import { messageCount } from '../slices/compaction/view-account.ts';
import { nextBriefing } from '../slices/handoff/handoff.ts';
import { nextAnnouncementEvent } from '../slices/hooks/announcements.ts';
import { nextConsultEvent } from '../slices/hooks/consult.ts';
import { nextFeedback } from '../slices/injections/feedback.ts';
import { nextMessageCheck } from '../slices/injections/message-hooks.ts';
import { checkpoint, dispatchCheckpoint, nextDelivery, nextFollowupEvent } from '../slices/injections/seam-passes.ts';
import { nextExpiry } from '../slices/reminders/reminders.ts';
import { consultEnding, endOfRun } from '../slices/runs/ending.ts';
import { unstartedRun } from '../slices/runs/provision.ts';
import { runOfLateMessage } from '../slices/runs/run-starts.ts';
import { predicatesAsked, toolStop } from '../slices/runs/stop-conditions.ts';
import { closeTurn, turnEnd, turnOpening } from '../slices/runs/turns.ts';
import { consultStep, undeclaredStepEnd, unfinishedStepEnd } from '../slices/steps/steps.ts';
import {
  lapsedSuspension,
  nextWakingMessage,
  suspensionEnd,
  suspensionPayload,
  suspensionStart,
} from '../slices/suspension/suspension.ts';
import type { SessionContext } from './context.ts';
import { nextEffectId } from './journal-place.ts';

/** The one event that follows, or null. Pure. */
export function next(state: MachineState): SessionEvent | null {
  const { context } = state;
  const leaf = leafOf(state);
  return (
    editEnd(context) ??
    nextOwedEvent(context) ??
    undeclaredStepEnd(context) ??
    nextChild(context, nextEffectId(context)) ??
    (leaf.startsWith('tearing_down') ? lapsedSuspension(context) : null) ??
    nextThresholdEvent(context, leaf) ??
    nextMessageCheck(context, leaf, nextEffectId(context)) ??
    nextAnnouncementEvent(context, leaf, nextEffectId(context)) ??
    derive[leaf]?.(context) ??
    null
  );
}

type Derivation = (context: SessionContext) => SessionEvent | null;

/** The own event of each state, which {@link next} derives last (NEXT-4). A state without a row has none. */
const derive: { readonly [leaf: string]: Derivation } = {
  'provisioning.session_start': (context) =>
    nextConsultEvent(context, 'session_start', { source: context.run === 1 ? 'start' : 'prompt' }),
  'provisioning.user_prompt_submit': (context) =>
    nextConsultEvent(context, 'user_prompt_submit', { prompt: context.prompt, origin: 'prompt' }),
  'assistant_streaming.opening': turnOpening,
  'assistant_streaming.pre_step': (context) => consultStep(context, 'PreStep'),
  'assistant_streaming.iteration_start': (context) => checkpoint(context, 'iteration_start'),
  'assistant_streaming.pre_compact': (context) => checkpoint(context, 'pre_compact'),
  'assistant_streaming.vetting_compaction': (context) =>
    nextConsultEvent(context, 'pre_compact', compactionPayload(context)),
  'assistant_streaming.compacting': (context) => nextCompactionEvent(context, nextEffectId(context)),
  'assistant_streaming.compacted': (context) => nextConsultEvent(context, 'post_compact', compactionPayload(context)),
  'assistant_streaming.transforming': (context) =>
    nextConsultEvent(context, 'transform_context', {
      message_count: messageCount(context.view),
      estimated_tokens: context.view.tokens,
    }),
  'assistant_streaming.post_compact': (context) => checkpoint(context, 'post_compact'),
  'function_execute.pre_tool_dispatch': (context) => refuseMalformed(context) ?? dispatchCheckpoint(context),
  'function_execute.pre_tool_use': (context) => consultCall(context, 'PreToolUse', nextToVet(context)),
  'function_execute.gate_tool_calls': consultGate,
  'function_execute.permission_asked': (context) => consultCall(context, 'permission_asked', nextToAskHooks(context)),
  'function_execute.dispatching': dispatchCheckpoint,
  'function_execute.running': nextBatchEvent,
  'function_execute.post_tool_dispatch': (context) => toolStop(context) ?? checkpoint(context, 'post_tool_dispatch'),
  'function_awaiting_approval.parked': (context) =>
    consultEditedCall(context, nextEffectId(context)) ?? nextBatchEvent(context),
  'function_awaiting_approval.pre_tool_dispatch': dispatchCheckpoint,
  'steering_check.post_turn': (context) => nextConsultEvent(context, 'post_turn', {}),
  'steering_check.file_edited': consultEditedFile,
  'steering_check.iteration_end': (context) => predicatesAsked(context) ?? checkpoint(context, 'iteration_end'),
  'steering_check.post_step': (context) => consultStep(context, 'PostStep'),
  'steering_check.closing': closeTurn,
  'steering_check.follow_up': nextFollowupEvent,
  stopped: runOfLateMessage,
  failed: runOfLateMessage,
  'daemon_idle.session_idle': (context) => nextConsultEvent(context, 'session_idle', {}),
  'daemon_idle.daemon_idle_pre': (context) => checkpoint(context, 'daemon_idle_pre'),
  'daemon_idle.daemon_idle_post': (context) => checkpoint(context, 'daemon_idle_post'),
  'suspended.pre_suspend': (context) => nextConsultEvent(context, 'pre_suspend', suspensionPayload(context.suspend)),
  'suspended.entering': (context) => suspensionStart(context, nextEffectId(context)),
  'suspended.parked': suspensionEnd,
  'suspended.post_resume': (context) => nextConsultEvent(context, 'post_resume', {}),
  'tearing_down.unwinding': endCallNotInFlight,
  'tearing_down.turn_closing': (context) =>
    unfinishedStepEnd(context) ??
    (context.turn_open ? turnEnd(context) : context.run_started ? null : unstartedRun(context)),
  'tearing_down.file_edited': consultEditedFile,
  'tearing_down.loop_exit': (context) => checkpoint(context, 'loop_exit'),
  'tearing_down.session_error': consultEnding('session_error'),
  'tearing_down.session_end': consultEnding('session_end'),
  'tearing_down.pre_finish': consultEnding('pre_finish'),
  'tearing_down.on_unsettled_detected': consultEnding('on_unsettled_detected'),
  'tearing_down.post_finish': consultEnding('post_finish'),
  'tearing_down.ending': endOfRun,
};

// Results of skipped calls (NEXT-1), then messages that enter the transcript now, then expiries of reminders.
function nextOwedEvent(context: SessionContext): SessionEvent | null {
  return (
    skippedResult(context) ??
    nextWakingMessage(context) ??
    nextBriefing(context) ??
    nextDelivery(context) ??
    nextFeedback(context) ??
    nextExpiry(context)
  );
}
