/**
 * The typed client over HTTP: connect to a gateway, start, steer and follow sessions. It runs wherever `fetch` exists,
 * also in browsers. Bundlers for browsers resolve `@coxswain/client` to this module.
 */
export { type CancelOutcome, hasEnded, type SessionStateName, topState } from '@coxswain/protocol';
export { Approval, type ApproveOptions, type DenyOptions } from './approval.ts';
export {
  DECISION_MAX_CHARS,
  printable,
  printableJson,
  summarizeArgs,
  summarizeResult,
  visibleLine,
} from './args-summary.ts';
export { Client, type RunOptions } from './client.ts';
export {
  BusNotPreparedError,
  ClientClosedError,
  CommandBlockedError,
  CommandNotStoredError,
  CommandRejectedError,
  CommandRevokedError,
  CoxswainError,
  GatewayUnreachableError,
  InvalidOptionError,
  JournalGapError,
  NoHostError,
  ReadRefusedError,
  ReceiptTimeoutError,
  SessionNotFoundError,
} from './client-errors.ts';
export {
  type CommandInput,
  type CommandReceipt,
  errorOnWire,
  receiptToWire,
  type SentCommand,
  type SessionSettings,
  sentCommand,
} from './command-form.ts';
export { createEventTranslator, type EventTranslator } from './event-translator.ts';
export { newCommandId, newSessionId, sessionIdOfMessage } from './fresh-ids.ts';
export { connect } from './http/connect.ts';
export type { GatewayOptions } from './http/gateway-options.ts';
export { HttpClient, HttpSession, type OfferedStarts, type Statechart, type TokenHolder } from './http/http-client.ts';
export type { BodyInput, SendOptions, SendStage, WaitStage, WireSentCommand } from './outgoing-command.ts';
export {
  type OutputOf,
  OutputSchemaError,
  type OutputSource,
  outputJsonSchema,
  type StartedOutput,
  type TypedPersona,
  type ValueSchema,
} from './output-schema.ts';
export type { WirePendingApproval } from './pending-approvals.ts';
export { ResultCollector, type RunResult } from './run-result.ts';
export {
  type CancelCallOptions,
  type CancelledCall,
  type ForkedSession,
  type ForkOptions,
  type InjectOptions,
  type Prompted,
  type PromptOptions,
  type ReadFrom,
  type RemindOptions,
  type ResultOptions,
  Session,
  type SessionState,
  type StartedSession,
  type StreamOptions,
  type SuspendRequest,
  type TypedResult,
  type WatchFrom,
} from './session-handle.ts';
export {
  describeState,
  type ListedSession,
  type ListQuery,
  SESSIONS_PAGE,
  type SessionsQuery,
  type WireListedDetails,
  type WireListedSession,
  type WireSessionListing,
  type WireSessionsPage,
} from './session-listing.ts';
export {
  nodesOf,
  type SessionTree,
  TREE_SESSIONS_MAX,
  type TreeNode,
  type WireSessionTree,
  type WireTreeNode,
} from './session-tree.ts';
export type { JournalEntry, JournalStart, Transport, WatchItem } from './transport.ts';
export { type DeliveredInjection, type FromRecord, type UiEvent, type UiEventOf, uiEventToWire } from './ui-events.ts';
export {
  type PersonaUsage,
  type RunUsage,
  type TokenUsage,
  tokenUsage,
  UsageCollector,
  type UsageReport,
  usageToWire,
  type WirePersonaUsage,
  type WireRunUsage,
  type WireUsageReport,
} from './usage-report.ts';
export { ClientWire, SessionWire, type StateOptions } from './wire-access.ts';
