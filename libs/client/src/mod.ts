/** The typed client: connect to a bus, start sessions, steer them, follow them. */
export type { HandlerPayload, HookContext, HookDefinitions, HookHandler } from '@coxswain/protocol';
export { hasEnded, topState } from '@coxswain/protocol';
export { printable, summarizeArgs, summarizeResult } from './args-summary.ts';
export type { BusInfo, StreamPresence } from './bus-info.ts';
export { Client, connect, type PendingApproval } from './client.ts';
export {
  BusNotPreparedError,
  ClientError,
  CommandBlockedError,
  CommandNotStoredError,
  CommandRejectedError,
  CommandRevokedError,
  JournalGapError,
  NoHostError,
  ReceiptTimeoutError,
  SessionNotFoundError,
} from './client-errors.ts';
export type { ConnectOptions } from './connection-options.ts';
export { defineHooks } from './define-hooks.ts';
export { definePersona, PersonaDefinitionError } from './define-persona.ts';
export {
  type ArgumentSchema,
  type ArgumentsOf,
  defineTool,
  LATER,
  type ServedToolDefinition,
  type ToolAnswer,
  type ToolCallContext,
  ToolDefinitionError,
} from './define-tool.ts';
export { createEventTranslator, type EventTranslator } from './event-translator.ts';
export type { ForkOptions } from './fork-session.ts';
export { newCommandId, newSessionId } from './fresh-ids.ts';
export { isNotPermitted } from './not-permitted.ts';
export type { StoredJournalRecord } from './read-journal.ts';
export { ResultCollector, type RunResult } from './run-result.ts';
export type { CallEnd, TakenUpCall } from './send-call-outcome.ts';
export type { BodyInput, SendOptions, SentCommand, WaitStage } from './send-command.ts';
export type { JobReport } from './send-job-report.ts';
export {
  type ForeignTool,
  PersonaNotServableError,
  PersonaVersionTakenError,
  type ServedPersonaInstance,
  type ServePersonaOptions,
  servePersona,
} from './serve-persona.ts';
export { type ServedTool, type ServeToolOptions, serveTool } from './serve-tool.ts';
export { type InjectOptions, type ReadFrom, type RemindOptions, Session } from './session-handle.ts';
export { describeState, type SessionListing } from './session-listing.ts';
export { readTree, type SessionTree, TREE_SESSIONS_MAX, type TreeNode } from './session-tree.ts';
export type { DeliveredInjection, FromRecord, UiEvent, UiEventOf } from './ui-events.ts';
export { type RunUsage, UsageCollector, type UsageReport } from './usage-report.ts';
export type { WatchItem } from './watch-session.ts';
