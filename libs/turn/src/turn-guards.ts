/**
 * The guards of the turn machine: every question that its transitions ask, by name. They see the context before the event
 * (T5), and put together what `queries` and the parts answer.
 */
import type { EventOf, EventType, HookPoint } from '@coxswain/protocol';
import { assign, setup } from 'xstate';
import { passDue } from './compaction.ts';
import type { SessionContext } from './context.ts';
import { type EndingPoint, passes } from './ending.ts';
import { evolve, type PlacedEvent } from './evolve.ts';
import * as q from './queries.ts';
import { isComplete, openStep, stepsAreLeft, stepTarget } from './steps.ts';
import { isStopped } from './stop-conditions.ts';

interface Args {
  readonly context: SessionContext;
  readonly event: PlacedEvent;
}
type On<T extends EventType> = EventOf<T> & { readonly n: number };

const checkpoint = (event: PlacedEvent) => event as On<'loop_checkpoint'>;
const callOf = (event: PlacedEvent): string | undefined => ('call_id' in event ? event.call_id : undefined);
const hooked =
  (point: HookPoint) =>
  ({ context }: Args) =>
    q.isHooked(context, point);
const passing =
  (point: EndingPoint) =>
  ({ context }: Args) =>
    passes(context, point);
const control =
  (name: On<'control_outcome'>['control'], status: On<'control_outcome'>['status']) =>
  ({ event }: Args) =>
    (event as On<'control_outcome'>).control === name && (event as On<'control_outcome'>).status === status;

const skipsBatch = ({ context, event }: Args) =>
  checkpoint(event).dispatch_skipped &&
  context.calls.every(
    (row) => row.problem || (row.status !== 'running' && row.status !== 'returned' && row.status !== 'ended'),
  );
const skipsRest = ({ context, event }: Args) =>
  checkpoint(event).dispatch_skipped &&
  !context.calls.some((row) => row.status === 'running' || row.status === 'returned');
const isLastDecision = ({ context, event }: Args) => !q.anyParkedBut(context, callOf(event) ?? null);
// A decision lets calls start: the one that it allows, or those that a sequential batch held back behind it.
const starts = ({ context, event }: Args) =>
  (event as On<'approval_decided'>).decision === 'allow' || q.nextToStart(context, callOf(event)) !== undefined;
const hookedStep = (context: SessionContext, point: 'PreStep' | 'PostStep', step: string) =>
  q.hooksFor(context, point, stepTarget(context, step), undefined, step).length > 0;
const suspends = control('suspend', 'suspending');
// A message keeps a session from parking itself, as it keeps one from terminating; a person who suspends it means it.
const parks = (context: SessionContext) =>
  context.suspend !== null && (context.suspend.call_id === undefined || context.delivered_at_end === 0);
const isCutShort = ({ context, event }: Args) =>
  (event as On<'message_complete'>).message.partial === true && context.model?.preempted === true;
const goesOn = ({ context }: Args) => q.turnGoesOn(context);
const hasWork = (args: Args) =>
  goesOn(args) ||
  stepsAreLeft(args.context) ||
  args.context.delivering.length > 0 ||
  args.context.waking?.takes_turn === true ||
  q.steeringIsLetIn(args.context);
const isJudgedDaemon = (context: SessionContext) =>
  context.pinned?.daemon === true && !q.steeringAwaitsVerdict(context);

/** What transitions may ask, by name, and the one thing that they do. */
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
      q.isHooked(context, 'gate_tool_calls') && context.calls.some((row) => row.status === 'proposed'),
    compacts_and_hooked: ({ context }: Args) => passDue(context) !== null && q.isHooked(context, 'pre_compact'),
    compacts: ({ context }: Args) => passDue(context) !== null,
    pass_is_vetoed: ({ context }: Args) => context.pass?.vetoed === true,
    hooked_post_compact: hooked('post_compact'),
    hooked_transform_context: hooked('transform_context'),
    hooked_post_turn: hooked('post_turn'),
    hooked_session_idle: hooked('session_idle'),
    hooked_pre_suspend: hooked('pre_suspend'),
    hooked_post_resume: hooked('post_resume'),
    has_edits: ({ context }: Args) => context.edited.length > 0,
    has_more_edits: ({ context }: Args) => context.edited.length > 1,
    has_no_edits: ({ context }: Args) => context.edited.length === 0,
    cancels: control('cancel', 'cancelled'),
    suspends,
    is_cut_short_and_hooked: (args: Args) => isCutShort(args) && q.isHooked(args.context, 'post_turn'),
    is_cut_short: isCutShort,
    is_partial: ({ event }: Args) => (event as On<'message_complete'>).message.partial === true,
    asks_for_calls: ({ event }: Args) =>
      (event as On<'message_complete'>).message.content.some((part) => part.type === 'call'),
    skips_batch_and_hooked: (args: Args) => skipsBatch(args) && q.isHooked(args.context, 'post_turn'),
    skips_batch: skipsBatch,
    skips_rest: skipsRest,
    skips_and_hooked: ({ context, event }: Args) =>
      checkpoint(event).dispatch_skipped && q.isHooked(context, 'post_turn'),
    skips: ({ event }: Args) => checkpoint(event).dispatch_skipped,
    batch_has_ended: ({ context }: Args) => q.allEndedBut(context, null),
    has_calls_to_vet: ({ context, event }: Args) => q.nextToVet(context, callOf(event)) !== undefined,
    // Only the end of its own question settles a call here; the end of its vetting leaves it to be asked about.
    has_calls_to_ask: ({ context, event }: Args) =>
      q.nextToAsk(
        context,
        event.type === 'consult_ended' && event.point === 'permission_asked' ? event.call_id : undefined,
      ) !== undefined,
    completes_batch: ({ context, event }: Args) => q.allEndedBut(context, callOf(event) ?? null),
    lets_hand_off: ({ context, event }: Args) =>
      (event as On<'consult_ended'>).point === 'OnHandoffEmitted' &&
      q.callRow(context, callOf(event) ?? '')?.status !== 'ended',
    // Nobody is left to ask about a hand-off that was told in an earlier record.
    frees_hand_off: ({ context, event }: Args) => {
      const row = q.nextToStart(context);
      const { table } = event as On<'hooks_changed'>;
      return (
        row?.handoff === 'emitted' &&
        !q.isConsulted(context, row) &&
        !q.isHooked({ ...context, hooks: table }, 'OnHandoffEmitted')
      );
    },
    goes_on_without: ({ context, event }: Args) => q.goesOnWithout(context, callOf(event) ?? ''),
    makes_room: ({ context, event }: Args) => q.makesRoom(context, callOf(event) ?? ''),
    is_last_and_starts: (args: Args) => isLastDecision(args) && starts(args),
    is_last_decision: isLastDecision,
    starts,
    terminates: ({ context, event }: Args) => checkpoint(event).delivered === 0 && q.batchTerminates(context),
    was_plain_answer: ({ context }: Args) => !context.batch_open,
    goes_on_at_cap: (args: Args) => goesOn(args) && q.isCapped(args.context),
    goes_on: goesOn,
    // A daemon that has answered within the cap, and for which nothing waits, has done its job and idles.
    is_capped: (args: Args) =>
      q.isCapped(args.context) &&
      (args.context.pinned?.daemon !== true || goesOn(args) || q.anythingWaits(args.context)),
    suspend_asked: ({ context }: Args) => parks(context),
    // Nobody asked for what a failed step waits for, so nobody can be told no.
    suspend_asked_and_hooked: ({ context }: Args) =>
      parks(context) && context.suspend?.step === undefined && q.isHooked(context, 'pre_suspend'),
    hooked_pre_step: ({ context, event }: Args) => hookedStep(context, 'PreStep', (event as On<'step_started'>).step),
    step_fails: ({ event }: Args) => (event as On<'step_finished'>).status === 'failed',
    step_fails_and_hooked: ({ context, event }: Args) =>
      (event as On<'step_finished'>).status === 'failed' && q.isHooked(context, 'post_turn'),
    // Of a fork that is somebody else by now, no step was begun.
    turn_may_begin: ({ context }: Args) => openStep(context) !== undefined || context.step === null,
    completes_step_and_hooked: ({ context, event }: Args) =>
      isComplete(context, checkpoint(event).delivered) &&
      hookedStep(context, 'PostStep', openStep(context)?.name ?? ''),
    suspends_and_hooked: (args: Args) => suspends(args) && q.isHooked(args.context, 'pre_suspend'),
    followup_waits: ({ context }: Args) => q.nextFollowup(context) !== undefined,
    is_said_directly: ({ event }: Args) => (event as On<'message_injected'>).origin === 'direct',
    takes_more_followups: ({ context }: Args) =>
      context.pinned?.drain.followups === 'all' && context.followups.length > 1,
    is_daemon_and_hooked: ({ context }: Args) => context.pinned?.daemon === true && q.isHooked(context, 'session_idle'),
    is_daemon: ({ context }: Args) => context.pinned?.daemon === true,
    // What hooks have yet to let in wakes nobody; its verdict does.
    wakes: ({ context, event }: Args) =>
      (!('mode' in event) || event.mode !== 'audit_only') &&
      (event.type === 'reminder_injected' ? event.direct === undefined : !q.isGuarded(context)),
    lets_in: ({ context, event }: Args) => {
      const { command_id, verdict } = event as On<'guard_ended'>;
      const injection = context.pending.find((candidate) => candidate.command_id === command_id);
      return verdict === 'allowed' && injection?.mode !== 'audit_only';
    },
    // Nobody is left to let in what waits.
    opens_the_door: ({ context, event }: Args) =>
      q.steeringAwaitsVerdict(context) && !q.isGuarded({ ...context, hooks: (event as On<'hooks_changed'>).table }),
    interrupts: ({ event }: Args) => 'mode' in event && event.mode === 'interrupt_immediate',
    has_work: hasWork,
    anything_waits: ({ context }: Args) => q.anythingWaits(context),
    is_daemon_and_judged_and_hooked: ({ context }: Args) =>
      isJudgedDaemon(context) && q.isHooked(context, 'session_idle'),
    is_daemon_and_judged: ({ context }: Args) => isJudgedDaemon(context),
    is_judged: ({ context }: Args) => !q.steeringAwaitsVerdict(context),
    nothing_is_parked: ({ context }: Args) => !q.anyParkedBut(context, null),
    is_quiet: ({ context }: Args) => !q.anythingInFlight(context) && q.openCalls(context).length === 0,
    turn_is_closed: ({ context }: Args) => !context.turn_open && context.run_started && !openStep(context),
    is_closed: ({ context }: Args) => context.closing === null,
    is_stopped: ({ context }: Args) => isStopped(context),
    is_used_up: ({ event }: Args) => (event as On<'budget_threshold'>).percent === 100,
    passes_session_error: passing('session_error'),
    passes_session_end: passing('session_end'),
    passes_pre_finish: passing('pre_finish'),
    passes_on_unsettled_detected: passing('on_unsettled_detected'),
    passes_post_finish: passing('post_finish'),
    ends_in_error: ({ event }: Args) => (event as On<'agent_end'>).stop_reason === 'error',
  },
});
