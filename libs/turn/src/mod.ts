/** The turn machine and the pure functions around it. Nothing else decides anything. */
export { type BudgetState, budgetsOf } from './budgets.ts';
export { nameOf } from './canceller.ts';
export { recordsRejection } from './command-memory.ts';
export { type CallRow, emptyContext, type OpenConsult, type Repins, type SessionContext } from './context.ts';
export { decide } from './decide.ts';
export { because, type Decision } from './decision.ts';
export { handedOn } from './delegation.ts';
export {
  type AbortOrder,
  type Effect,
  effectsOf,
  openEffectIds,
  type TimerEffect,
  timerOf,
  timersOf,
  type WorkEffect,
} from './effects.ts';
export { isClearable } from './estimate-tokens.ts';
export { pendingBytes } from './injection-bytes.ts';
export { MACHINE_VERSION, REPLAYED_VERSIONS } from './machine-versions.ts';
export { next } from './next.ts';
export type { OpenChild } from './open-children.ts';
export { lostTries, type PersonaWait, personaWait } from './persona-waits.ts';
export { anythingInFlight } from './queries.ts';
export { ruleHolder } from './remembered.ts';
export { countDownAtCompaction, inheritedReminders, type LiveReminder } from './reminders.ts';
export { rewriteResult, textLength } from './rewrite-result.ts';
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
} from './session-actor.ts';
export { isEnded, leafOf, type SessionState, topStateOf } from './state.ts';
export { openStep } from './steps.ts';
export { turnMachine } from './turn-machine.ts';
export { UNKNOWN_OUTCOME, UNKNOWN_QUESTION } from './unknown-outcome.ts';
export { knownWindow, messagesOf, pinOf, type ViewAccount, type ViewPart } from './view-account.ts';
