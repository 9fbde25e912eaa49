/**
 * What each event does to the context. Pure, and free of control: which state comes next is the machine's alone.
 *
 * E1  An event only states a fact; evolve never refuses one.
 * E2  Effect ids are `<record n>-<index>`: the event that asks for an effect takes the next index of its record.
 */
import {
  callsOf,
  type EventOf,
  type MessageSource,
  SESSION_SOURCE,
  type SessionEvent,
  type ToolDefinition,
  textOf,
} from '@coxswain/protocol';
import { announced, withAnnouncement } from './announcements.ts';
import { decisionIn, WAITS_NO_MORE, waitCount, waitsOf } from './approvals.ts';
import { NOTHING_USED } from './budgets.ts';
import { setCall } from './call-rows.ts';
import { remember } from './command-memory.ts';
import { passDue } from './compaction.ts';
import { type CallRow, type KnownTool, NO_STALL, NO_USAGE, type OpenEffect, type SessionContext } from './context.ts';
import { changedSettings, ownedAfterCopy, repinned } from './copied-session.ts';
import { editAnswered, editProposed } from './edited-calls.ts';
import { editedFiles } from './edited-files.ts';
import { nextIndex } from './effect-index.ts';
import {
  collapse,
  compacted,
  fired,
  inherits,
  injectionEntry,
  isHeldBack,
  neverDelivered,
  takenBack,
  waitsFrom,
  withoutReminder,
} from './evolve-injections.ts';
import { personaChanged } from './evolve-persona.ts';
import { clockStarted, clockStopped, spent, summaryPaid, thresholdTold, watchClock } from './evolve-spending.ts';
import { idling, resumed, suspended, timerFired } from './evolve-waits.ts';
import { feedbackEvolved, feedbackSaid, feedbackTaken } from './feedback.ts';
import { guardEnded, injectionBlocked } from './guard.ts';
import { HANDOFF_SEAM, NO_RELAY } from './handoff.ts';
import { jobsAfter, withDeferredReport } from './jobs.ts';
import { childAfterCall, childEnded, childStarted } from './open-children.ts';
import { waitsForPersona } from './persona-waits.ts';
import { isPreempted, preempt } from './preempt.ts';
import * as q from './queries.ts';
import { rulesAfter } from './remembered.ts';
import { countDownAtTurnEnd, showReminders } from './reminders.ts';
import { watchAnswer, watchResult, watchTold, watchTurn } from './stall-watch.ts';
import { openStep, STEP_SEAM, stepEvolved, stepTarget, stepTold } from './steps.ts';
import { OUTPUT_SEAM, outputEvolved } from './structured-output.ts';
import { interruptedBy } from './suspension.ts';
import { UNKNOWN_OUTCOME } from './unknown-outcome.ts';
import { viewAfter } from './view-account.ts';

/** An event with the record it stands in: its number, and when it was made, milliseconds since 1970. */
export type PlacedEvent = SessionEvent & { readonly n: number; readonly at_ms: number };

/** The members of the context that an event changes. */
export function evolve(context: SessionContext, event: PlacedEvent): Partial<SessionContext> {
  const view = viewAfter(context.view, event, context.pinned?.compaction);
  const announcements = withAnnouncement(context, event);
  const change = {
    ...changeOf(context, event),
    ...outputEvolved(context, event),
    ...(view === context.view ? {} : { view }),
    ...(announcements === context.announcements ? {} : { announcements }),
  };
  return event.n === context.n ? change : { next_effect: 0, ...change, n: event.n, at_ms: event.at_ms };
}

function changeOf(context: SessionContext, event: PlacedEvent): Partial<SessionContext> {
  switch (event.type) {
    case 'prompt_received':
      return {
        run: event.run,
        run_started: false,
        settings: event.settings ?? context.settings,
        prompt: event.messages.map(textOf).join('\n'),
        turn: 0,
        turn_open: false,
        turns_counted: 0,
        run_usage: NO_USAGE,
        run_cost: 0,
        count: NOTHING_USED,
        stop_held: false,
        batch_open: false,
        calls: [],
        edited: [],
        dispatch_skipped: false,
        preempting: [],
        cut_short: false,
        delivered_at_end: 0,
        aborting: false,
        stop_reason: null,
        cancel_reason: null,
        cancel_actor: null,
        failure: null,
        failed_at: null,
        step: null,
        relay: NO_RELAY,
        suspend: null,
        suspension: null,
        signals: [],
        idle_timer: null,
        waking: null,
        announcements: [],
        stall: NO_STALL,
        ...(event.parent ? { parent: event.parent } : {}),
        hops: event.parent?.hops ?? event.from?.hops ?? 0,
        // One that has waited for its run is known.
        followups: context.followups.filter((followup) => followup.command_id !== event.command_id),
        ...(context.followups.some(({ command_id }) => command_id === event.command_id)
          ? {}
          : remember(context, event.command_id)),
        ...ask(context, event, 'provision'),
      };
    case 'persona_changed':
      return personaChanged(context, event);
    case 'handoff_emitted':
      return setCall(context, event.call_id, { handoff: 'emitted' });
    case 'prices_changed':
      return context.pinned
        ? { pinned: { ...context.pinned, price: event.price, price_fingerprint: event.fingerprint } }
        : {};
    case 'stop_condition_held':
      return { stop_held: true };
    case 'output_rejected':
      // A repair comes before a stop condition.
      return { stop_held: false };
    case 'stop_predicates_asked':
      return {
        stop_check: { id: event.effect_id, epoch: context.epoch, predicates: event.predicates },
        next_effect: nextIndex(context, event) + 1,
      };
    case 'stop_predicates_answered':
      return { stop_check: null, stop_checked: true };
    case 'step_started':
    case 'step_args_rewritten':
    case 'step_output_rewritten':
    case 'step_finished':
      return stepEvolved(context, event);
    case 'budget_threshold':
      return thresholdTold(context, event);
    case 'tools_changed':
      return {
        tools: Object.fromEntries(event.tools.map((tool) => [tool.name, knownTool(tool)])),
        ...(context.pinned ? { pinned: { ...context.pinned, tools_fingerprint: event.fingerprint } } : {}),
      };
    case 'hooks_changed':
      return {
        hooks: event.table,
        ...(context.pinned ? { pinned: { ...context.pinned, hooks_fingerprint: event.fingerprint } } : {}),
      };
    case 'agent_start':
      return { run_started: true, provision: null, repins: null, ...clockStarted(context, event) };
    case 'session_copied':
      return event.command_id === undefined ? {} : remember(context, event.command_id);
    case 'settings_changed':
      return {
        settings: changedSettings(context.settings, event.settings),
        repins: repinned(context.repins, event.settings),
        ...(event.reprovisions ? ask(context, event, 'provision') : {}),
      };
    case 'reprovisioned':
      return { provision: null, repins: null };
    case 'turn_start':
      return {
        turn: event.turn,
        turn_open: true,
        turns_counted: context.turns_counted + 1,
        turn_usage: NO_USAGE,
        turn_cost: 0,
        stop_checked: false,
        stop_held: false,
        batch_open: false,
        dispatch_skipped: false,
        preempting: [],
        cut_short: false,
        delivered_at_end: 0,
        waking: null,
        // A message has kept the session from parking itself.
        ...(context.suspend?.call_id === undefined ? {} : { suspend: null }),
        overflows: 0,
        pass: null,
      };
    case 'loop_checkpoint':
      return checkpointed(context, event);
    case 'feedback_received':
    case 'feedback_dropped':
      return {
        ...feedbackEvolved(context, event),
        stall: watchTold(context.stall, event.source),
        ...(event.command_id === undefined ? {} : remember(context, event.command_id)),
      };
    case 'message_injected':
      if (event.seam === STEP_SEAM) return stepTold(context);
      if (event.seam === OUTPUT_SEAM) return {};
      if (event.seam === HANDOFF_SEAM) return { relay: { ...context.relay, owes: null } };
      if (event.origin === 'direct') return told(context, event);
      if (event.origin === 'feedback') return feedbackSaid(context, event.command_id);
      return event.origin === 'followup'
        ? {
            followups: context.followups.filter((followup) => followup.command_id !== event.command_id),
            ...hopsHeard(context, context.followups, event.command_id),
            step: null,
            relay: { ...context.relay, count: 0 },
          }
        : {
            delivering: context.delivering.filter((injection) => injection.command_id !== event.command_id),
            ...hopsHeard(context, context.delivering, event.command_id),
          };
    case 'message_complete':
      return answered(context, event);
    case 'context_overflowed':
      return { model: null, overflows: context.overflows + 1, ...spent(context, event.usage) };
    case 'compaction_started':
      return ask(context, event, 'compacting');
    case 'compaction_done': {
      const { archived, remaining, usage } = event;
      const pass = context.pass ? { ...context.pass, strategy: event.strategy, done: { archived, remaining } } : null;
      // The next prompt is another than the last.
      return { compacting: null, pass, ...compacted(context, event), ...summaryPaid(context, usage, 0) };
    }
    case 'compaction_skipped':
      return { compacting: null, ...summaryPaid(context, event.usage, context.count.prompt_tokens) };
    case 'call_started':
      return {
        ...setCall(context, event.call_id, {
          status: 'running',
          effect_id: event.effect_id,
          epoch: context.epoch,
          started_at_ms: event.at_ms,
          in_doubt: undefined,
        }),
        next_effect: nextIndex(context, event) + 1,
      };
    case 'call_accepted':
      return setCall(context, event.call_id, { accepted: event.epoch });
    case 'call_cancel_requested': {
      const { command_id, reason, actor, inject_reminder, timeout_ms } = event;
      return {
        ...setCall(context, event.call_id, { cancel: { command_id, reason, actor, inject_reminder, timeout_ms } }),
        ...remember(context, command_id),
      };
    }
    case 'call_returned':
      return {
        ...setCall(context, event.call_id, {
          status: 'returned',
          returned: {
            status: event.status,
            result: event.result,
            duration_ms: event.duration_ms,
            ...(event.park ? { park: event.park } : {}),
          },
        }),
        ...(event.command_id === undefined ? {} : remember(context, event.command_id)),
      };
    case 'child_started':
      return childStarted(context, event);
    case 'child_ended':
      return { ...childEnded(context, event), ...remember(context, event.command_id) };
    case 'parent_notified':
      return { notice: null };
    case 'call_ended':
      return {
        ...childAfterCall(context, event.call_id),
        ...setCall(context, event.call_id, {
          status: 'ended',
          ended: event.status,
          is_error: event.is_error,
          returned: undefined,
        }),
        ...(event.command_id === undefined ? {} : remember(context, event.command_id)),
        stall: watchResult(context.stall, event),
        skipping:
          context.skipping.length === 0 ? context.skipping : context.skipping.filter((id) => id !== event.call_id),
      };
    case 'files_edited':
      return { edited: editedFiles(context, event.paths) };
    case 'call_args_rewritten':
      return setCall(context, event.call_id, { args: event.args });
    case 'approval_requested':
      return {
        ...setCall(context, event.call_id, {
          status: 'parked',
          requested_by: event.requested_by,
          ...(event.requested_by === UNKNOWN_OUTCOME ? IN_DOUBT : {}),
          ...waitsOf(context, event),
        }),
        next_effect: nextIndex(context, event) + waitCount(event),
      };
    case 'edited_call_proposed':
      return editProposed(context, event);
    case 'edited_call_checked':
      return { consult: null };
    case 'approval_notified':
      return setCall(context, event.call_id, { notice: undefined });
    case 'permission_remembered':
    case 'permission_forgotten':
      return { remembered: rulesAfter(context.remembered, event) };
    case 'permissions_changed':
      return { persona_rules: event.rules };
    case 'approval_decided':
      return decided(context, event);
    case 'turn_end':
      return {
        turn_open: false,
        ...(context.relay.from === null ? {} : { relay: { ...context.relay, from: null } }),
        reminders: countDownAtTurnEnd(context.reminders),
        ...(context.batch_open ? { stall: watchTurn(context.stall) } : {}),
      };
    case 'agent_end':
      return {
        stop_reason: event.stop_reason,
        provision: null,
        model: null,
        compacting: null,
        closing: null,
        consult: null,
        announcements: [],
        suspend: null,
        suspension: null,
        signals: [],
        idle_timer: null,
        waking: null,
        stop_check: null,
        ...clockStopped(context, event),
        ...(context.run === 1 && context.parent && !context.parent.detached ? ask(context, event, 'notice') : {}),
      };
    case 'steering_received':
    case 'reminder_injected':
    case 'followup_received':
      return {
        ...waitsFrom(context, event),
        ...('preempt' in event && event.preempt && !isHeldBack(context, event)
          ? preempt(context, event.command_id, event.actor)
          : {}),
        // What a hook returns is no command, and nobody repeats it.
        ...('hook' in event ? {} : remember(context, event.command_id, injectionEntry(event.command_id))),
      };
    case 'injection_collapsed':
      return collapse(context, event);
    case 'reminder_fired':
      return fired(context, event);
    case 'reminder_inherited':
      return inherits(context, event);
    case 'reminder_deduped':
    case 'reminder_expired':
      // The next prompt may be shorter than the last.
      return { ...withoutReminder(context, event.command_id), count: { ...context.count, prompt_tokens: 0 } };
    case 'hook_call':
      return hookAsked(context, event);
    case 'hook_vetoed':
      if (event.point === 'permission_asked' && event.decision === 'allow' && event.call_id) {
        return setCall(context, event.call_id, { granted_by: `hook:${event.hook}` });
      }
      if (event.point === 'pre_suspend') return { suspend: null };
      if (event.point === 'pre_compact' && context.pass) return { pass: { ...context.pass, vetoed: true } };
      return {};
    case 'injection_blocked':
      return { ...injectionBlocked(context, event.command_id), ...neverDelivered(context, event.command_id) };
    case 'guard_ended':
      return guardEnded(context, event);
    case 'consult_ended':
      // The seam before these hooks would have asked for the answer, had there been none.
      if (event.point === 'transform_context' && !context.aborting)
        return { consult: null, ...ask(context, event, 'model') };
      return {
        consult: null,
        ...(event.call_id ? consulted(context, event.call_id, event.point) : {}),
        ...(event.point === 'file_edited' ? { edited: context.edited.slice(1) } : {}),
      };
    case 'command_rejected':
      return {
        ...remember(context, event.command_id, `${event.command_id}!${event.code}`),
        ...editAnswered(context, event),
      };
    case 'control_outcome':
      return controlled(context, event);
    case 'suspend_requested': {
      const { type: _, n: __, at_ms: ___, ...suspend } = event;
      return { suspend, ...(event.command_id === undefined ? {} : remember(context, event.command_id)) };
    }
    case 'suspended':
      return { ...suspended(context, event), ...clockStopped(context, event) };
    case 'resumed':
      return { ...resumed(context, event), ...clockStarted(context, event) };
    case 'signal_received': {
      const { command_id, name, data } = event;
      const signal = { command_id, name, ...(data === undefined ? {} : { data }) };
      return { signals: [...context.signals, signal], ...remember(context, command_id) };
    }
    case 'timer_fired':
      return timerFired(context, event);
    case 'waiting_for_persona':
      return waitsForPersona(context, event);
    case 'persona_wait_ended':
      return { persona_wait: null };
    case 'persona_step_lost':
      return { lost_steps: { effect_id: event.effect_id, lost: event.lost } };
    case 'run_failed':
      return {
        aborting: true,
        stop_reason: context.stop_reason ?? event.stop_reason,
        failure: context.failure ?? event.error,
        failed_at: context.failed_at ?? event.n,
        ...(event.source === 'provisioning' ? { provision: null } : {}),
        ...(event.source === 'model' ? { model: null } : {}),
      };
    case 'tools_closed':
      return { closing: null };
    case 'owned':
      if (event.after_copy) return ownedAfterCopy(context, event, (count) => watchClock(context, event, count));
      return {
        epoch: event.epoch,
        ...(context.model ? { model: { ...context.model, restarts: context.model.restarts + 1 } } : {}),
        ...(context.compacting
          ? { compacting: { ...context.compacting, restarts: context.compacting.restarts + 1 } }
          : {}),
      };
    case 'hook_returned':
      return event.verdict?.kind === 'job' ? { jobs: jobsAfter(context.jobs, event.hook, event.verdict.receipt) } : {};
    case 'job_report_deferred':
      return { consult: withDeferredReport(context.consult, event) };
    case 'job_reported':
      return {
        jobs: jobsAfter(context.jobs, event.source, event.receipt),
        ...remember(context, event.command_id),
      };
    case 'announced':
      return announced(context);
    case 'copy_failed':
    case 'job_untracked':
    case 'reminder_dropped':
      return {};
  }
}

function checkpointed(
  context: SessionContext,
  event: EventOf<'loop_checkpoint'> & PlacedEvent,
): Partial<SessionContext> {
  const ids = event.delivered_ids;
  const delivered: Partial<SessionContext> =
    ids.length === 0
      ? {}
      : {
          delivering: context.pending.filter((injection) => ids.includes(injection.command_id)),
          delivering_seam: event.kind,
          pending: context.pending.filter((injection) => !ids.includes(injection.command_id)),
          ...(event.kind === 'loop_exit' ? {} : { unheard: true }),
          ...interruptedBy(context, ids),
        };
  switch (event.kind) {
    case 'pre_tool_dispatch':
      return event.dispatch_skipped
        ? { ...delivered, dispatch_skipped: true, skipping: event.skipped_call_ids ?? [] }
        : delivered;
    case 'post_tool_dispatch':
    case 'iteration_end':
      return { ...delivered, delivered_at_end: ids.length };
    case 'pre_compact':
      return { ...delivered, ...feedbackTaken(context, event.kind, event.inbox_delivered), pass: passDue(context) };
    case 'post_compact':
      return {
        ...delivered,
        ...feedbackTaken(context, event.kind, event.inbox_delivered),
        pass: null,
        reminders: showReminders(context.reminders),
        ...(q.isHooked(context, 'transform_context') ? {} : ask(context, event, 'model')),
      };
    case 'daemon_idle_pre':
      return { ...delivered, turns_counted: 0, hops: 0, clock_watch: null, step: null, ...idleRelay(context, event) };
    case 'daemon_idle_post':
      return { ...delivered, idle_timer: null, ...clockStarted(context, event) };
    case 'loop_exit':
      return { ...delivered, ...(context.run_started && context.pinned ? ask(context, event, 'closing') : {}) };
    default:
      return delivered;
  }
}

// What a job has used says nothing of the next.
function idleRelay(context: SessionContext, event: PlacedEvent): Partial<SessionContext> {
  return { relay: NO_RELAY, ...idling({ ...context, relay: NO_RELAY }, event) };
}

function answered(context: SessionContext, event: EventOf<'message_complete'>): Partial<SessionContext> {
  const calls = event.message.partial ? [] : callsOf(event.message);
  const usage = {
    model: null,
    cut_short: event.message.partial === true && context.model?.preempted === true,
    ...spent(context, event.usage),
    ...(event.message.partial ? {} : { stall: watchAnswer(context.stall, calls) }),
  };
  if (calls.length === 0) return { ...usage, ...answerOfStep(context, event) };
  return {
    ...usage,
    batch_open: true,
    calls: calls.map(
      (call): CallRow => ({
        call_id: call.call_id,
        tool: call.tool,
        args: call.args,
        status: 'proposed',
        ...(call.problem ? { problem: call.problem } : {}),
      }),
    ),
  };
}

// Kept for the hooks that are shown it, and for nothing else.
function answerOfStep(context: SessionContext, event: EventOf<'message_complete'>): Partial<SessionContext> {
  const { step } = context;
  const name = openStep(context)?.name;
  if (!step || name === undefined) return {};
  const hooked = q.hooksFor(context, 'PostStep', stepTarget(context, name)).length > 0;
  return hooked ? { step: { ...step, answer: textOf(event.message) } } : {};
}

function decided(context: SessionContext, event: EventOf<'approval_decided'>): Partial<SessionContext> {
  const remembered = event.command_id ? remember(context, event.command_id) : {};
  if (event.decision === 'superseded' || event.decision === 'aborted') {
    return { ...setCall(context, event.call_id, { status: 'proposed', ...WAITS_NO_MORE }), ...remembered };
  }
  return {
    ...setCall(context, event.call_id, {
      status: event.decision === 'allow' ? 'allowed' : 'proposed',
      ...WAITS_NO_MORE,
      decided: decisionIn(event),
      ...(event.args ? { args: event.args } : {}),
    }),
    ...remembered,
  };
}

function hookAsked(context: SessionContext, event: EventOf<'hook_call'> & PlacedEvent): Partial<SessionContext> {
  const { consult } = context;
  const registration = context.hooks.find(({ id, point }) => id === event.hook && point === event.point);
  const failsOpen = registration?.on_error === 'fail_open';
  const fail_open = failsOpen ? { fail_open: [...(consult?.fail_open ?? []), event.hook] } : {};
  if (consult) return { consult: { ...consult, hooks: [...consult.hooks, event.hook], ...fail_open } };
  return {
    consult: {
      effect_id: event.effect_id,
      epoch: context.epoch,
      point: event.point,
      ...(event.call_id ? { call_id: event.call_id } : {}),
      ...(event.command_id ? { command_id: event.command_id } : {}),
      hooks: [event.hook],
      ...fail_open,
      payload: event.payload,
      ...(context.aborting ? { of_end: true } : {}),
    },
    next_effect: nextIndex(context, event) + 1,
  };
}

function consulted(
  context: SessionContext,
  callId: string,
  point: EventOf<'consult_ended'>['point'],
): Partial<SessionContext> {
  if (point === 'PreToolUse') return setCall(context, callId, { vetted: true });
  if (point === 'permission_asked') return setCall(context, callId, { asked: true });
  if (point === 'OnHandoffEmitted') return setCall(context, callId, { handoff: 'let' });
  return {};
}

function controlled(context: SessionContext, event: EventOf<'control_outcome'>): Partial<SessionContext> {
  if (event.control === 'revoke' || event.control === 'replace') return ofInjection(context, event);
  const remembered = remember(context, event.command_id);
  if (event.control === 'approve') return { ...remembered, ...editAnswered(context, event) };
  if (event.control === 'cancel' && event.status === 'cancelled') {
    // A budget that is used up has ended the run already, and says why.
    if (context.stop_reason === 'budget_exceeded') return remembered;
    const stopReason = context.failure ? context.stop_reason : 'cancelled';
    return {
      ...remembered,
      aborting: true,
      stop_reason: stopReason,
      cancel_reason: event.reason ?? null,
      cancel_actor: event.actor ?? null,
    };
  }
  if (event.control === 'suspend' && event.status === 'lapsed') return { ...remembered, suspend: null };
  if (event.control === 'resume' && event.status === 'resumed') {
    const { suspension } = context;
    return suspension
      ? { ...remembered, suspension: { ...suspension, resumed_by: event.command_id } }
      : { ...remembered, suspend: null };
  }
  if (event.control === 'cancel_call' && event.status === 'cancelled') {
    const row = context.calls.find((candidate) => candidate.call_id === event.target);
    if (!row || row.cancel) return remembered;
    // The call had not gone out, so no request stands in its row yet; who asks again is told the first reason.
    const { command_id, reason, actor } = event;
    return {
      ...remembered,
      ...setCall(context, event.target, {
        cancel: { command_id, reason, actor, inject_reminder: false, timeout_ms: 0 },
      }),
    };
  }
  return remembered;
}

/** A call about which a person is asked after a crash: whatever was decided of it before was about its first sending. */
const IN_DOUBT: Partial<CallRow> = { in_doubt: true, decided: undefined, effect_id: undefined, epoch: undefined };

/** What the runtime itself says is recorded at once; of what a wait has left to say it takes the first. */
function told(context: SessionContext, event: EventOf<'message_injected'>): Partial<SessionContext> {
  const { waking } = context;
  return waking?.seam === event.seam ? { waking: { ...waking, messages: waking.messages.slice(1) } } : {};
}

function ask(
  context: SessionContext,
  event: PlacedEvent,
  what: 'provision' | 'model' | 'compacting' | 'closing' | 'notice',
): Partial<SessionContext> {
  const index = nextIndex(context, event);
  const effect: OpenEffect = { id: `${event.n}-${index}`, epoch: context.epoch };
  const next = { next_effect: index + 1 };
  if (what === 'model') {
    // One that an interrupt ends before it begins hears nothing.
    if (isPreempted(context)) return { ...next, model: { ...effect, restarts: 0, preempted: true } };
    return { ...next, model: { ...effect, restarts: 0 }, unheard: false };
  }
  if (what === 'compacting') return { ...next, compacting: { ...effect, restarts: 0 } };
  return { ...next, [what]: effect };
}

function knownTool({ source, traits }: ToolDefinition): KnownTool {
  return source === SESSION_SOURCE ? { ...traits, by_session: true } : traits;
}

/** What a delivered message counts of messages before it. */
function hopsHeard(
  { hops }: SessionContext,
  queue: readonly { readonly command_id: string; readonly from?: MessageSource | undefined }[],
  commandId: string,
): Partial<SessionContext> {
  const heard = queue.find(({ command_id }) => command_id === commandId)?.from?.hops ?? 0;
  return heard > hops ? { hops: heard } : {};
}

function ofInjection(context: SessionContext, event: EventOf<'control_outcome'>): Partial<SessionContext> {
  const change = takenBack(context, event);
  return { ...change, ...remember({ ...context, ...change }, event.command_id) };
}
