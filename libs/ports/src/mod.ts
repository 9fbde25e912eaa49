/**
 * Ports: the interfaces of the runtime to its environment, without code. Functions are in `discovery` and
 * `regular-file`.
 */
export type { ApprovalNotices, RememberedRules } from './approvals.ts';
export type { Clock, Ids, Log } from './clock.ts';
export type {
  HookHandlers,
  HookQuestion,
  HookReply,
  HookRequest,
  Hooks,
  StopPredicate,
  StopPredicates,
  StopQuestion,
} from './hooks.ts';
export type { ActiveSession, ActiveSessions, HostChannel, HostChannelHandlers } from './host-channel.ts';
export type {
  CommandInbox,
  CommandNotification,
  CommandSender,
  InboxHandlers,
  Publisher,
  StoredCommand,
  UnroutableCommand,
} from './inbox.ts';
export type { AppendResult, Journal, StoredRecord } from './journal.ts';
export type { Model, ModelPart, ModelRequest, ModelResult, Models } from './model.ts';
export type { PersonaStep, Personas, ServedPersonas, StepEnd } from './personas.ts';
export type { Purge, PurgesWithin, Retention, StoredBlob } from './purge.ts';
export type { SessionIndex } from './session-index.ts';
export type {
  Blobs,
  MeasuredUsage,
  SessionSummary,
  Snapshots,
  SummarizedSession,
  TenantUsage,
  Timers,
} from './storage.ts';
export type { Meters, SpanSink, Telemetry } from './telemetry.ts';
export type {
  ApprovalQuestion,
  ResultPiece,
  ToolCall,
  ToolOutcome,
  ToolProbe,
  ToolSource,
  Toolset,
  ToolsetSpec,
  WholeResults,
} from './tools.ts';
