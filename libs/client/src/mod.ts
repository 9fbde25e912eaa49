/** The typed client: connect to NATS or to a gateway, start, steer and follow sessions. */
export type { AcceptedCall } from '@coxswain/bus';
export {
  busErrorOf as toClientError,
  isNotPermitted,
  NatsRefusedError as StoreRefusedError,
  NatsUnavailableError as StoreUnavailableError,
} from '@coxswain/bus';
export {
  type AllowAnswer,
  type AskAnswer,
  allow,
  ask,
  type DenyAnswer,
  deny,
  type HandlerPayload,
  type HookContext,
  type HookDefinitions,
  type HookHandler,
  type HookRemindOptions,
  type RemindAnswer,
  type RewriteAnswer,
  remind,
  rewrite,
  startJob,
} from '@coxswain/protocol';
export { BusClient, BusSession, BusWire } from './bus-client.ts';
export type { BusInfo, StreamPresence } from './bus-info.ts';
export { connect } from './connect.ts';
export type { ConnectOptions } from './connection-options.ts';
export { defineHooks } from './define-hooks.ts';
export {
  definePersona,
  type PersonaDefinition,
  PersonaDefinitionError,
  type PersonaHookDefinition,
} from './define-persona.ts';
export {
  type CheckedTool,
  checkTool,
  defineTool,
  type InputSchema,
  LATER,
  type Tool,
  type ToolAnswer,
  type ToolApprovalContext,
  type ToolCallContext,
  ToolDefinitionError,
} from './define-tool.ts';
export { exportLines } from './export-journal.ts';
// All exports of the HTTP client, except `connect`: the one above supports both transports.
export * from './http.ts';
export type { ListPlace, NewestSessions, PlacedSession } from './newest-sessions.ts';
export { cursorOf, partsOfCursor } from './page-cursor.ts';
export { listingsOf, mostRecentFirst } from './page-of-sessions.ts';
export {
  type ApprovalPlace,
  type ApprovalsQuery,
  approvalsIn,
  longestPendingFirst,
  pageOfApprovals,
  pendingApprovals,
  type WireApprovalsPage,
} from './pending-approvals.ts';
export {
  type PersonaSettings,
  personaFromWire,
  type ReadPersonaDefinition,
  readPersonaDefinition,
} from './persona-form.ts';
export { namedHandlers, type PersonaHandlers } from './persona-handlers.ts';
export type { JournalPlace, JournalReading, StoredJournalRecord } from './read-journal.ts';
export type { CallOutcome } from './send-call-outcome.ts';
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
export { readTree } from './session-tree.ts';
