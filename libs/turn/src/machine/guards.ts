/**
 * The guards of the chart, by name. They combine the predicates of the slices, and read the context before the event; those
 * of eventless transitions read the context after it (TURN-5, chart.ts).
 */

import type { EventOf, EventType, HookPoint } from '@coxswain/protocol';
import { assign, setup } from 'xstate';
import type { SessionContext } from '../core/context.ts';
import { evolve } from '../core/evolve.ts';
import type { PlacedEvent } from '../core/journal-place.ts';
import { makesRoom, nextToAskHooks, nextToStart, nextToVet, parkingMakesRoom } from '../slices/calls/batch.ts';
import { allEndedBut, anyParkedBut, batchTerminates, callRow, openCalls } from '../slices/calls/table.ts';
import { compactionDue } from '../slices/compaction/compaction.ts';
import { hooksFor, isConsulted, isHooked } from '../slices/hooks/consult.ts';
import { CHANNEL_OF_EVENT, type QueueingEvent } from '../slices/injections/channels.ts';
import {
  followupsMustWait,
  messageContinuesRun,
  needsHookVerdict,
  nextFollowup,
  pendingAwaitsVerdict,
  pendingIsDeliverable,
} from '../slices/injections/waiting.ts';
import { anythingInFlight, hasQueuedWork, isCapped, openTurnContinuesRun } from '../slices/runs/continuation.ts';
import { type EndingPoint, isPointSkipped } from '../slices/runs/ending.ts';
import { isStopped } from '../slices/runs/stop-conditions.ts';
import { openStep, stepsAreLeft, stepTarget } from '../slices/steps/progress.ts';
import { isComplete } from '../slices/steps/steps.ts';

interface Args {
  readonly context: SessionContext;
  readonly event: PlacedEvent;
}

type On<T extends EventType> = EventOf<T> & { readonly n: number };

const asCheckpoint = (event: PlacedEvent) => event as On<'loop_checkpoint'>;

const callOf = (event: PlacedEvent): string | undefined => ('call_id' in event ? event.call_id : undefined);

const hooked =
  (point: HookPoint) =>
  ({ context }: Args) =>
    isHooked(context, point);

const skipsPoint =
  (point: EndingPoint) =>
  ({ context }: Args) =>
    isPointSkipped(context, point);

const control =
  (name: On<'control_outcome'>['control'], status: On<'control_outcome'>['status']) =>
  ({ event }: Args) =>
    (event as On<'control_outcome'>).control === name && (event as On<'control_outcome'>).status === status;

// A pass of pre_tool_dispatch that delivers a message skips the calls that are `proposed`, `parked` or `allowed`:
// - skips_calls: it skips some, whatever the others do
// - skips_last_open_calls: and no other call is open, i.e. `running` or `returned`
// - skips_whole_batch: and none has ended, except calls with a `problem`, which never run
const skipsWholeBatch = ({ context, event }: Args) =>
  asCheckpoint(event).dispatch_skipped &&
  context.calls.every(
    (row) => row.problem || (row.status !== 'running' && row.status !== 'returned' && row.status !== 'ended'),
  );

const skipsLastOpenCalls = ({ context, event }: Args) =>
  asCheckpoint(event).dispatch_skipped &&
  !context.calls.some((row) => row.status === 'running' || row.status === 'returned');

// No other call waits for an approval.
const isLastDecision = ({ context, event }: Args) => !anyParkedBut(context, callOf(event) ?? null);

// A decision may let calls start: the call that it allows, even if no slot is free yet; or calls that waited for its call,
// such as the later calls of a sequential batch, or a hand-off.
const letsCallStart = ({ context, event }: Args) =>
  (event as On<'approval_decided'>).decision === 'allow' || nextToStart(context, callOf(event)) !== undefined;

const hookedStep = (context: SessionContext, point: 'PreStep' | 'PostStep', step: string) =>
  hooksFor(context, point, stepTarget(context, step), undefined, step).length > 0;

const suspends = control('suspend', 'suspending');

// A suspension was requested, and no message prevents it. A message that the last seam of the turn delivers prevents
// the suspension that a tool call requested. It does not prevent that of a suspend command, nor that after a failed
// step.
const suspensionIsDue = (context: SessionContext) =>
  context.suspend !== null && (context.suspend.call_id === undefined || context.delivered_at_end === 0);

const isCutShort = ({ context, event }: Args) =>
  (event as On<'message_complete'>).message.partial === true && context.model?.preempted === true;

const openTurnContinues = ({ context }: Args) => openTurnContinuesRun(context);

const hasWork = (args: Args) =>
  openTurnContinues(args) ||
  stepsAreLeft(args.context) ||
  args.context.delivering.length > 0 ||
  args.context.waking?.takes_turn === true ||
  pendingIsDeliverable(args.context);

const mayIdle = (context: SessionContext) => context.pinned?.daemon === true && !pendingAwaitsVerdict(context);

/** The types of the machine, the guards that its transitions name, and their one action. */
export const turnSetup = setup({
  types: {
    context: {} as SessionContext,
    events: {} as PlacedEvent,
    input: {} as { readonly sessionId: string },
    tags: {} as 'ended' | 'seam' | 'wait',
  },
  actions: {
    evolve: assign(({ context, event }) => evolve(context, event)),
  },
  guards: {
    hooked_session_start: hooked('session_start'),
    hooked_user_prompt_submit: hooked('user_prompt_submit'),
    hooked_gate_tool_calls: ({ context }: Args) =>
      isHooked(context, 'gate_tool_calls') && context.calls.some((row) => row.status === 'proposed'),
    compaction_is_due_and_hooked: ({ context }: Args) =>
      compactionDue(context) !== null && isHooked(context, 'pre_compact'),
    compaction_is_due: ({ context }: Args) => compactionDue(context) !== null,
    compaction_is_vetoed: ({ context }: Args) => context.compaction?.vetoed === true,
    hooked_post_compact: hooked('post_compact'),
    hooked_transform_context: hooked('transform_context'),
    hooked_post_turn: hooked('post_turn'),
    hooked_post_resume: hooked('post_resume'),
    has_edits: ({ context }: Args) => context.edited.length > 0,
    has_more_edits: ({ context }: Args) => context.edited.length > 1,
    has_no_edits: ({ context }: Args) => context.edited.length === 0,
    cancels: control('cancel', 'cancelled'),
    suspends,
    is_cut_short_and_hooked: (args: Args) => isCutShort(args) && isHooked(args.context, 'post_turn'),
    is_cut_short: isCutShort,
    is_partial: ({ event }: Args) => (event as On<'message_complete'>).message.partial === true,
    answer_has_calls: ({ event }: Args) =>
      (event as On<'message_complete'>).message.content.some((part) => part.type === 'call'),
    skips_whole_batch_and_hooked: (args: Args) => skipsWholeBatch(args) && isHooked(args.context, 'post_turn'),
    skips_whole_batch: skipsWholeBatch,
    skips_last_open_calls: skipsLastOpenCalls,
    skips_calls_and_hooked: ({ context, event }: Args) =>
      asCheckpoint(event).dispatch_skipped && isHooked(context, 'post_turn'),
    skips_calls: ({ event }: Args) => asCheckpoint(event).dispatch_skipped,
    batch_has_ended: ({ context }: Args) => allEndedBut(context, null),
    has_calls_to_vet: ({ context, event }: Args) => nextToVet(context, callOf(event)) !== undefined,
    // Only the end of its own permission_asked consult leaves a call out. After the end of its PreToolUse consult,
    // permission_asked hooks must still check it.
    has_calls_to_ask: ({ context, event }: Args) =>
      nextToAskHooks(
        context,
        event.type === 'consult_ended' && event.point === 'permission_asked' ? event.call_id : undefined,
      ) !== undefined,
    completes_batch: ({ context, event }: Args) => allEndedBut(context, callOf(event) ?? null),
    hand_off_is_accepted: ({ context, event }: Args) =>
      (event as On<'consult_ended'>).point === 'OnHandoffEmitted' &&
      callRow(context, callOf(event) ?? '')?.status !== 'ended',
    // No hook is left to consult about a hand-off that an earlier record emitted.
    last_hand_off_hook_removed: ({ context, event }: Args) => {
      const row = nextToStart(context);
      const { table } = event as On<'hooks_changed'>;
      return (
        row?.handoff === 'emitted' &&
        !isConsulted(context, row) &&
        !isHooked({ ...context, hooks: table }, 'OnHandoffEmitted')
      );
    },
    parking_makes_room: ({ context, event }: Args) => parkingMakesRoom(context, callOf(event) ?? ''),
    makes_room: ({ context, event }: Args) => makesRoom(context, callOf(event) ?? ''),
    is_last_decision_and_lets_call_start: (args: Args) => isLastDecision(args) && letsCallStart(args),
    is_last_decision: isLastDecision,
    lets_call_start: letsCallStart,
    batch_ends_run: ({ context, event }: Args) => asCheckpoint(event).delivered === 0 && batchTerminates(context),
    was_plain_answer: ({ context }: Args) => !context.batch_open,
    turn_continues_run_at_cap: (args: Args) => openTurnContinues(args) && isCapped(args.context),
    turn_continues_run: openTurnContinues,
    // At max_turns, or if a budget does not cover another answer. There a daemon ends only if its turn or queued work would
    // continue the run. Otherwise it becomes idle.
    is_capped: (args: Args) =>
      isCapped(args.context) &&
      (args.context.pinned?.daemon !== true || openTurnContinues(args) || hasQueuedWork(args.context)),
    suspension_is_due: ({ context }: Args) => suspensionIsDue(context),
    // The error boundary of a failed step requests its suspension, not a command or a call. So hooks cannot deny it.
    suspension_is_due_and_hooked: ({ context }: Args) =>
      suspensionIsDue(context) && context.suspend?.step === undefined && isHooked(context, 'pre_suspend'),
    hooked_pre_step: ({ context, event }: Args) => hookedStep(context, 'PreStep', (event as On<'step_started'>).step),
    step_fails: ({ event }: Args) => (event as On<'step_finished'>).status === 'failed',
    step_fails_and_hooked: ({ context, event }: Args) =>
      (event as On<'step_finished'>).status === 'failed' && isHooked(context, 'post_turn'),
    // False if hooks denied the step. `step` is null if a fork's persona does not declare the open step:
    // `undeclaredStepEnd` has ended the step, and the turn may start.
    turn_may_begin: ({ context }: Args) => openStep(context) !== undefined || context.step === null,
    completes_step_and_hooked: ({ context, event }: Args) =>
      isComplete(context, asCheckpoint(event).delivered) &&
      hookedStep(context, 'PostStep', openStep(context)?.name ?? ''),
    suspends_and_hooked: (args: Args) => suspends(args) && isHooked(args.context, 'pre_suspend'),
    followup_waits: ({ context }: Args) => nextFollowup(context) !== undefined,
    is_direct_message: ({ event }: Args) => (event as On<'message_injected'>).origin === 'direct',
    takes_more_followups: ({ context }: Args) =>
      context.pinned?.drain.followups === 'all' && context.followups.length > 1,
    is_daemon_and_hooked: ({ context }: Args) => context.pinned?.daemon === true && isHooked(context, 'session_idle'),
    is_daemon: ({ context }: Args) => context.pinned?.daemon === true,
    // Whether a queued message wakes an idle daemon. A follow-up, which has no mode, does. A direct reminder of a hook
    // does not: it enters the transcript without a turn. Nor does a message that needs the verdict of hooks: a verdict
    // that accepts the message wakes the daemon (`accepted_message_wakes`).
    wakes: ({ context, event }: Args) => {
      const queued = event as On<QueueingEvent>;
      return (
        (!('mode' in queued) || messageContinuesRun(queued)) &&
        !('direct' in queued && queued.direct) &&
        !needsHookVerdict(context, CHANNEL_OF_EVENT[queued.type])
      );
    },
    accepted_message_wakes: ({ context, event }: Args) => {
      const { command_id, verdict } = event as On<'guard_ended'>;
      const injection = context.pending.find((candidate) => candidate.command_id === command_id);
      // A follow-up is not in `pending`, and wakes.
      return verdict === 'allowed' && (!injection || messageContinuesRun(injection));
    },
    // No hook is left whose verdict the queued messages await.
    last_hook_removed: ({ context, event }: Args) =>
      followupsMustWait(context) && !followupsMustWait({ ...context, hooks: (event as On<'hooks_changed'>).table }),
    is_interrupt: ({ event }: Args) => 'mode' in event && event.mode === 'interrupt_immediate',
    has_work: hasWork,
    has_queued_work: ({ context }: Args) => hasQueuedWork(context),
    daemon_may_idle_and_hooked: ({ context }: Args) => mayIdle(context) && isHooked(context, 'session_idle'),
    daemon_may_idle: ({ context }: Args) => mayIdle(context),
    awaits_no_verdict: ({ context }: Args) => !pendingAwaitsVerdict(context),
    nothing_is_parked: ({ context }: Args) => !anyParkedBut(context, null),
    is_quiet: ({ context }: Args) => !anythingInFlight(context) && openCalls(context).length === 0,
    turn_is_closed: ({ context }: Args) => !context.turn_open && context.run_started && !openStep(context),
    tools_are_closed: ({ context }: Args) => context.closing === null,
    stop_condition_holds: ({ context }: Args) => isStopped(context),
    budget_is_used_up: ({ event }: Args) => (event as On<'budget_threshold'>).percent === 100,
    skips_session_error: skipsPoint('session_error'),
    skips_session_end: skipsPoint('session_end'),
    skips_pre_finish: skipsPoint('pre_finish'),
    skips_on_unsettled_detected: skipsPoint('on_unsettled_detected'),
    skips_post_finish: skipsPoint('post_finish'),
    ends_in_error: ({ event }: Args) => (event as On<'agent_end'>).stop_reason === 'error',
  },
});
