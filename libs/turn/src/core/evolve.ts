/**
 * The changes of the context by each event: a dispatch table over the slices. Pure. The chart alone selects the next state.
 *
 * EVOLVE-1  An event states a fact. `evolve` does not check whether the event is allowed, and rejects none.
 */

import type { EventType } from '@coxswain/protocol';
import { approvalDecided, approvalRequested } from '../slices/approvals/approvals.ts';
import { editAnswered, editProposed } from '../slices/approvals/edited-calls.ts';
import { rulesAfter } from '../slices/approvals/remembered.ts';
import {
  answerUsageAdded,
  clockStarted,
  clockStopped,
  compactionUsageAdded,
  thresholdReported,
} from '../slices/budgets/spending.ts';
import { editedFiles } from '../slices/calls/outcome.ts';
import { acceptRow, settleNotice } from '../slices/calls/row-changes.ts';
import { changeCall, noteOnCall } from '../slices/calls/table.ts';
import {
  callArgsRewritten,
  callCancelRequested,
  callEnded,
  callReturned,
  callStarted,
} from '../slices/calls/transitions.ts';
import { childAfterCall, childEnded, childStarted, parentReportOpened } from '../slices/children/children.ts';
import { compactionDone, compactionStarted } from '../slices/compaction/compaction.ts';
import { viewAfter } from '../slices/compaction/view-account.ts';
import { settingsChanged } from '../slices/copies/copies.ts';
import { announced, withAnnouncement } from '../slices/hooks/announcements.ts';
import { hookAsked, hookVetoed } from '../slices/hooks/consult.ts';
import { consultEnded } from '../slices/hooks/consult-outcome.ts';
import { jobsAfter, withDeferredReport } from '../slices/hooks/jobs.ts';
import { feedbackNoted } from '../slices/injections/feedback.ts';
import { guardEnded, injectionBlocked } from '../slices/injections/message-hooks.ts';
import { collapse, injectionReceived, markBlocked } from '../slices/injections/queue.ts';
import { deliveredAt, messageInjected } from '../slices/injections/seam-passes.ts';
import { fired, reminderEnded, reminderInherited, remindersAfterCompaction } from '../slices/reminders/reminders.ts';
import { runFailed } from '../slices/runs/ending.ts';
import { answered } from '../slices/runs/model-answers.ts';
import { outputAfter } from '../slices/runs/output.ts';
import { sessionOwned } from '../slices/runs/owners.ts';
import { hooksChanged, personaChanged, pricesChanged, toolsChanged } from '../slices/runs/provision.ts';
import { promptReceived } from '../slices/runs/run-starts.ts';
import { stopCheckOpened } from '../slices/runs/stop-conditions.ts';
import { turnEnded, turnStarted } from '../slices/runs/turns.ts';
import { personaWaitStarted } from '../slices/steps/persona-waits.ts';
import { stepEvolved } from '../slices/steps/steps.ts';
import { daemonJobStarted } from '../slices/suspension/daemon.ts';
import { signalReceived, suspendRequested } from '../slices/suspension/requests.ts';
import { resumed, suspended } from '../slices/suspension/suspension.ts';
import { noteCommand, noteSourceCommand } from './command-memory.ts';
import { copyContext, type SessionContext } from './context.ts';
import { controlled } from './evolve-controls.ts';
import { seamPassed } from './evolve-seams.ts';
import type { Placed, PlacedEvent } from './journal-place.ts';
import { AT_RUN_END, AT_RUN_START, AT_TURN_START } from './resets.ts';
import { timerFired } from './timers.ts';

type Change = Partial<SessionContext>;

type Evolver<T extends EventType> = (context: SessionContext, event: Placed<T>) => Change;

/** The change of an event: a constant for every event of its type, or a function of context and event. */
type Part<T extends EventType> = Change | Evolver<T>;

/**
 * The context after an event.
 *
 * All changes are written into one copy. Nested spreads would take longer than the rest of an event: V8 (as of Node 20)
 * is slow when it copies an object that is itself a copy.
 */
export function evolve(context: SessionContext, event: PlacedEvent): SessionContext {
  const after = copyContext(context);
  // The first event of a record: set its number and time, and count its effects from 0.
  if (event.n !== context.n) {
    after.n = event.n;
    after.at_ms = event.at_ms;
    after.next_effect = 0;
  }
  for (const part of EVOLVERS[event.type] as readonly Part<EventType>[])
    Object.assign(after, typeof part === 'function' ? part(context, event) : part);
  after.output = outputAfter(after.output, event);
  const view = viewAfter(context.view, event, context.pinned?.compaction);
  if (view !== context.view) after.view = view;
  const announcements = withAnnouncement(context, event);
  if (announcements !== context.announcements) after.announcements = announcements;
  return after;
}

/**
 * The changes by each event. Every function in a row gets the context before the event; if several change one member,
 * the last one counts. {@link evolve} adds the changes that many events cause: of the announcements, of the checked
 * output, and of the view. Of the view only the end of a reminder is in this table (`reminderEnded`).
 */
const EVOLVERS: { readonly [T in EventType]: readonly Part<T>[] } = {
  // ---- runs and turns ----
  session_copied: [noteSourceCommand],
  prompt_received: [...AT_RUN_START, promptReceived],
  persona_changed: [personaChanged],
  tools_changed: [toolsChanged],
  hooks_changed: [hooksChanged],
  prices_changed: [pricesChanged],
  permissions_changed: [(_, event) => ({ persona_rules: event.rules })],
  settings_changed: [settingsChanged],
  reprovisioned: [{ provision: null, repins: null }],
  agent_start: [{ run_started: true, provision: null, repins: null }, clockStarted],
  turn_start: [...AT_TURN_START, daemonJobStarted, turnStarted],
  message_complete: [answered],
  turn_end: [turnEnded],
  agent_end: [...AT_RUN_END, (_, event) => ({ stop_reason: event.stop_reason }), clockStopped, parentReportOpened],
  run_failed: [runFailed],
  tools_closed: [{ closing: null }],
  owned: [sessionOwned],
  copy_failed: [],
  command_rejected: [
    (context, event) => noteCommand(context, event.command_id, `${event.command_id}!${event.code}`),
    editAnswered,
  ],
  control_outcome: [controlled],
  stop_condition_held: [{ stop_held: true }],
  stop_predicates_asked: [stopCheckOpened],
  stop_predicates_answered: [{ stop_check: null, stop_checked: true }],
  // A repair precedes a stop condition (OUTPUT-3, runs/output.ts).
  output_rejected: [{ stop_held: false }],
  budget_threshold: [thresholdReported],

  // ---- messages ----
  loop_checkpoint: [deliveredAt, seamPassed],
  message_injected: [messageInjected],
  steering_received: [injectionReceived],
  reminder_injected: [injectionReceived],
  followup_received: [injectionReceived],
  injection_collapsed: [collapse],
  injection_blocked: [injectionBlocked, markBlocked],
  guard_ended: [guardEnded],
  feedback_received: [feedbackNoted],
  feedback_dropped: [feedbackNoted],
  reminder_fired: [fired],
  reminder_inherited: [reminderInherited],
  reminder_deduped: [reminderEnded],
  reminder_expired: [reminderEnded],
  reminder_dropped: [],

  // ---- calls and approvals ----
  call_started: [callStarted],
  call_accepted: [(context, { call_id, epoch }) => changeCall(context, call_id, (row) => acceptRow(row, epoch))],
  call_cancel_requested: [callCancelRequested],
  call_args_rewritten: [callArgsRewritten],
  call_returned: [callReturned],
  call_ended: [childAfterCall, callEnded],
  files_edited: [(context, event) => ({ edited: editedFiles(context, event.paths) })],
  approval_requested: [approvalRequested],
  approval_notified: [(context, event) => changeCall(context, event.call_id, settleNotice)],
  approval_decided: [approvalDecided],
  edited_call_proposed: [editProposed],
  edited_call_checked: [{ consult: null }],
  permission_remembered: [(context, event) => ({ remembered: rulesAfter(context.remembered, event) })],
  permission_forgotten: [(context, event) => ({ remembered: rulesAfter(context.remembered, event) })],

  // ---- hooks ----
  hook_call: [hookAsked],
  hook_returned: [
    (context, { hook, verdict }) =>
      verdict?.kind === 'job' ? { jobs: jobsAfter(context.jobs, hook, verdict.receipt) } : {},
  ],
  hook_vetoed: [hookVetoed],
  consult_ended: [consultEnded],
  announced: [announced],
  job_report_deferred: [(context, event) => ({ consult: withDeferredReport(context.consult, event) })],
  job_reported: [
    (context, event) => ({ jobs: jobsAfter(context.jobs, event.source, event.receipt) }),
    noteSourceCommand,
  ],
  job_untracked: [],

  // ---- compaction ----
  compaction_started: [compactionStarted],
  // The next prompt differs from the last one, so its size is unknown.
  compaction_done: [
    compactionDone,
    remindersAfterCompaction,
    (context, event) => compactionUsageAdded(context, event.usage, 0),
  ],
  compaction_skipped: [
    { compacting: null },
    (context, event) => compactionUsageAdded(context, event.usage, context.count.prompt_tokens),
  ],
  context_overflowed: [
    (context, event) => ({ model: null, overflows: context.overflows + 1, ...answerUsageAdded(context, event.usage) }),
  ],

  // ---- steps, hand-offs and children ----
  step_started: [stepEvolved],
  step_args_rewritten: [stepEvolved],
  step_output_rewritten: [stepEvolved],
  step_finished: [stepEvolved],
  waiting_for_persona: [personaWaitStarted],
  persona_wait_ended: [{ persona_wait: null }],
  persona_step_lost: [(_, { effect_id, lost }) => ({ lost_steps: { effect_id, lost } })],
  handoff_emitted: [(context, event) => noteOnCall(context, event.call_id, { handoff: 'emitted' })],
  child_started: [childStarted],
  child_ended: [childEnded, noteSourceCommand],
  parent_notified: [{ notice: null }],

  // ---- waits ----
  suspend_requested: [suspendRequested],
  suspended: [suspended, clockStopped],
  resumed: [resumed, clockStarted],
  signal_received: [signalReceived],
  timer_fired: [timerFired],
};
