/**
 * The exports of the turn machine: the rules of a session, without I/O. Start reading in core/decide.ts.
 */

export { recordsRejection } from './core/command-memory.ts';
export { emptyContext, type SessionContext } from './core/context.ts';
export { decide } from './core/decide.ts';
export { type Decision, reasonSuffix } from './core/decision.ts';
export type { AbortOrder, Effect, TimerEffect, WorkEffect } from './core/effect.ts';
export { effectsOf, openEffectIds } from './core/effects.ts';
export { next } from './core/next.ts';
export { awaitedTimers, sessionTimer } from './core/timers.ts';
export {
  applyEvent,
  DerivationUnboundedError,
  EventNotAcceptedError,
  emptyState,
  restoreState,
  SessionActor,
  type StoredState,
  type TracedEvent,
  traceEvent,
} from './machine/actor.ts';
export { type SessionState, turnMachine } from './machine/chart.ts';
export { type ChartRunner, selectChartRunner } from './machine/chart-runner.ts';
export { isEnded, leafOf, topStateOf } from './machine/state.ts';
export { MACHINE_VERSION, REPLAYED_VERSIONS } from './machine/version.ts';
export { UNKNOWN_OUTCOME, UNKNOWN_QUESTION } from './slices/approvals/approvals.ts';
export { currentBinding } from './slices/approvals/remembered.ts';
export { type BudgetState, budgetsOf } from './slices/budgets/budgets.ts';
export { nameOf } from './slices/calls/cancel.ts';
export { rewriteResult, textLength } from './slices/calls/results.ts';
export type { CallRow } from './slices/calls/state.ts';
export { remindersForChild } from './slices/children/delegation.ts';
export type { OpenChild } from './slices/children/state.ts';
export { isClearable } from './slices/compaction/estimate-tokens.ts';
export type { ViewAccount, ViewPart } from './slices/compaction/state.ts';
export { knownWindow, messageCount, pinOf } from './slices/compaction/view-account.ts';
export { failsClosed } from './slices/hooks/answers.ts';
export type { OpenConsult } from './slices/hooks/state.ts';
export { queuedBytes } from './slices/injections/waiting.ts';
export { countDownAtCompaction, inheritedReminders } from './slices/reminders/reminders.ts';
export type { LiveReminder } from './slices/reminders/state.ts';
export { anythingInFlight } from './slices/runs/continuation.ts';
export type { Repins } from './slices/runs/state.ts';
export { lostAttempts, personaWait } from './slices/steps/persona-waits.ts';
export { openStep } from './slices/steps/progress.ts';
export type { PersonaWait } from './slices/steps/state.ts';
