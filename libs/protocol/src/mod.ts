/**
 * The protocol: everything that goes over a wire or into a journal.
 */

// catalogues/: error codes, metrics and seams
export { type CatalogueEntry, ERROR_CATALOGUE } from './catalogues/error-catalogue.ts';
export { CoxswainError, type ErrorCode, errorKindOf, isErrorCode } from './catalogues/error-codes.ts';
export { hasHttpStatus, httpStatusOf } from './catalogues/http-status.ts';
export {
  METRIC_CATALOGUE,
  METRIC_LABEL_VALUES_MAX,
  type MetricEntry,
  type MetricLabel,
  type MetricName,
} from './catalogues/metric-catalogue.ts';
export { INJECTION_VERBS, type InjectionVerb, Mode, SEAM_KINDS, SEAMS, SeamKind } from './catalogues/seams.ts';
// commands/: bodies of commands, receipts, and the rules of hosts for requests
export { Actor } from './commands/actor.ts';
export { ApprovalNotice, ApprovalNoticeOutcome } from './commands/approval-notices.ts';
export {
  COMMAND_BODIES,
  type CommandBody,
  type CommandProblem,
  INVALID_COMMAND_ID,
  type InternalVerb,
  parseBody,
  parseCommand,
  problemOf,
  StartSettings,
  takesText,
  VERBS,
  type Verb,
} from './commands/commands.ts';
export {
  CancelChildBody,
  ChildEndedBody,
  CREW_BODIES,
  type CrewVerb,
  isCrewVerb,
  MessageBody,
  parseCrewCommand,
  StartChildBody,
} from './commands/crew-commands.ts';
export {
  type AllowedOrigin,
  checkRequest,
  commandCeiling,
  HostPolicy,
  type HostPolicyInput,
  type HostRules,
  type HostSurroundings,
  isAllowedOrigin,
  isBelow,
  isRefused,
  KEY_OWNERS,
  type KeyOwner,
  mayHaveKey,
  messageProblem,
  modelProblem,
  OPEN_RULES,
  type RefusedPath,
  rulesFor,
  SYSTEM_PATHS,
  serverProblem,
  VARIABLE_REFERENCE,
} from './commands/host-policy.ts';
export { httpBodyOf, httpFieldOf, natsBodyOf, natsFieldOf } from './commands/http-command-fields.ts';
export { CallOutcomeBody, parseCallOutcome, parseFeedback } from './commands/internal-commands.ts';
export { modelName } from './commands/model-choice.ts';
export { type QuotaName, Quotas, type QuotasInput } from './commands/quotas.ts';
export {
  becameIn,
  DetailNames,
  deferredFateIn,
  injectionFateIn,
  isDeferredBy,
  isQueuedBy,
  Receipt,
  rejectedFate,
  rejectionIn,
} from './commands/receipts.ts';
export { redactArgs, redactForDecision, redactJson, type ShownBounds } from './commands/redact-args.ts';
export {
  bindingProblem,
  describeBinding,
  describeRule,
  matchOf,
  PersonaIdentity,
  PersonaSource,
  RememberedRule,
  RememberScope,
  RuleBinding,
  rememberedFor,
  StoredRule,
} from './commands/remembered-rules.ts';
export {
  type FieldDecision,
  FORK_CHANGE_DECISIONS,
  FORK_DECISIONS,
  MODEL_DECISIONS,
  PERSONA_DECISIONS,
  PROMPT_DECISIONS,
  START_DECISIONS,
} from './commands/request-names.ts';
export { isCredentialName, isReference, secretInUrl } from './commands/request-secrets.ts';
export { allowanceOf } from './commands/start-allowances.ts';
export { DemoStart, StartOptions } from './commands/start-options.ts';
export {
  OnTimeout,
  SuspensionRequest,
  type SuspensionRequestFields,
  suspensionRequestProblem,
  suspensionUntilProblem,
} from './commands/suspension-request.ts';
// hooks/: hook points, payloads, returns and registrations
export type { ExactHandler, ExactHooks, Wrong } from './hooks/exact-hooks.ts';
export type {
  AnyHandler,
  BudgetPointName,
  HandlerPayload,
  HookContext,
  HookDefinitions,
  HookEntry,
  HookHandler,
  HookPointName,
  HookPointOf,
  HookSettings,
} from './hooks/hook-handlers.ts';
export {
  type AllowAnswer,
  type AskAnswer,
  allow,
  ask,
  type DenyAnswer,
  deny,
  type HookRemindOptions,
  type RemindAnswer,
  type RewriteAnswer,
  remind,
  rewrite,
  startJob,
} from './hooks/hook-helpers.ts';
export { HOOK_PAYLOADS } from './hooks/hook-payloads.ts';
export {
  BUDGET_HOOK_PERCENTAGES,
  HOOK_CATALOGUE,
  HOOK_MOMENTS,
  HOOK_POINTS,
  HookPoint,
  pascalNameOfPoint,
} from './hooks/hook-points.ts';
export type { HookQuestion, HookReply, ReceivedQuestion } from './hooks/hook-questions.ts';
export {
  HookId,
  HookRegistration,
  HookTable,
  inCallOrder,
  isOfPersona,
  registeredTwice,
  registrationMatches,
} from './hooks/hook-registrations.ts';
export { failureRefusesAt, HOOK_RETURNS, type ReturnRow } from './hooks/hook-returns.ts';
export {
  HookAnnouncement,
  HookArgs,
  HookServiceName,
  ServedHookAnswer,
  SHAPED_MESSAGES_MAX,
} from './hooks/hook-services.ts';
export { isOpenJob, JobReceipt, type JobSettings } from './hooks/job-receipts.ts';
export { isHookFailure, parseReturn } from './hooks/parse-return.ts';
export { beyondPersona, personaProblem, readPersona, readPersonaHooks } from './hooks/read-persona-hooks.ts';
export {
  type HookRegistrationInput,
  type RegistrationProblem,
  readRegistration,
  WrittenRegistration,
} from './hooks/read-registration.ts';
export { returnProblem } from './hooks/returned-json.ts';
export { HookAnswer, HookFailure, HookReminder, type HookReturn, isWrongAnswer, Verdict } from './hooks/verdicts.ts';
export { toWireReturn } from './hooks/wire-return.ts';
// journal/: records, their inputs and events, statuses, exports and tombstones
export { CallCancellation, CancelOutcome, cancellationIn } from './journal/call-cancellation.ts';
export {
  CompactionMode,
  ControlStatus,
  ControlVerb,
  Denial,
  EVENT_SCHEMAS,
  EVENT_TYPES,
  type EventOf,
  type EventType,
  isDelivery,
  SessionEvent,
  StopReason,
} from './journal/events.ts';
export {
  blobLine,
  checkExportEnd,
  closingLine,
  ExportLineInvalidError,
  exportedRefsOf,
  readBlobLine,
  readClosingLine,
} from './journal/export-lines.ts';
export {
  AfterCopy,
  ChangedSettings,
  CopyOrigin,
  EVERY_HOOK,
  ForkChanges,
  type ForkChangesInput,
  ForkRequest,
} from './journal/forks.ts';
export {
  addUsage,
  CallAccepted,
  CallOutcome,
  CloseOutcome,
  CommandInput,
  CompactOutcome,
  ConsultOutcome,
  EditedPath,
  Failure,
  Feedback,
  FeedbackInput,
  HooksChangedInput,
  Input,
  ModelOutcome,
  type Outcome,
  OwnedInput,
  ParentReportOutcome,
  Provision,
  ProvisionOutcome,
  ResolvedCompaction,
  SessionFailedInput,
  StopAnswer,
  StopOutcome,
  TimerInput,
  TimerPayload,
  TimerPurpose,
  ToolResult,
  Usage,
} from './journal/inputs.ts';
export {
  AssistantMessage,
  CallPart,
  callsOf,
  FilePart,
  Message,
  MessageOrigin,
  ProviderMetadata,
  pairingProblem,
  ReasoningPart,
  ReminderMessage,
  ShownUserMessage,
  TextPart,
  ToolMessage,
  textOf,
  UserMessage,
  userText,
} from './journal/messages.ts';
export {
  BlobMissingError,
  blobRefsOf,
  Cursor,
  decodeRecord,
  decodeUnchangedRecord,
  GENESIS_HASH,
  JournalRecord,
  LARGE_FIELDS_MAX,
  RECORD_VERSION,
  RecordNotServedError,
  RecordTooLargeError,
  RecordUnreadableError,
  RecordVersionUnknownError,
  SessionDeletedError,
  StateValue,
  type StoredJson,
  withLargeFields,
} from './journal/record.ts';
export { UPCASTS, type Upcast } from './journal/record-upcasts.ts';
export { ExpiryReason, type ReminderFields, RoleHint } from './journal/reminders.ts';
export {
  deletedSessionOf,
  indexEntryOf,
  ListedSessionDocument,
  listedSessionOf,
  SessionIndexEntry,
  SessionStatus,
} from './journal/session-status.ts';
export type { EndedSpan, SpanAttributes, SpanMoment, SpanValue } from './journal/spans.ts';
export { hasEnded, SESSION_STATE_NAMES, type SessionStateName, topState } from './journal/state-names.ts';
export type { Chart, ChartState, ChartTransition } from './journal/statechart.ts';
export { deletionSentence, TOMBSTONE_VERSION, Tombstone, tombstoneBytes, tombstoneIn } from './journal/tombstone.ts';
// personas/: definitions, permissions, skills, steps and crews
export { BUDGETS, Budget, DEFAULT_THRESHOLDS, RunBudgets, WholeRunLimits } from './personas/budgets.ts';
export {
  Ceiling,
  ceilingBelow,
  childIdOf,
  InheritedReminder,
  isSessionActor,
  MessageSource,
  messageText,
  ParentLink,
  sessionActor,
} from './personas/crews.ts';
export { hostNotice, readHostNotice } from './personas/host-notice.ts';
export { HOST_TAGS, QUOTED, quoteHostTags, quoteHostTagsInPieces, restoreHostTags } from './personas/host-tags.ts';
export {
  failedStep,
  type ModelAnswered,
  type ModelAsked,
  type StepModels,
  StepPart,
  StepRequest,
  StepResult,
  stoppedStep,
} from './personas/model-steps.ts';
export { OutputCheck, OutputSchema, outputInstruction } from './personas/output-schema.ts';
export {
  BUILT_IN_RULES,
  PermissionRule,
  Permissions,
  PinnedPermissions,
  pinPermissions,
  type Ruling,
  ruleOn,
} from './personas/permissions.ts';
export {
  CompactionSettings,
  CompactionStrategy,
  Limits,
  McpServer,
  McpServers,
  ModelName,
  ModelSettings,
  modeProblem,
  Persona,
  type PersonaInput,
  TransformContext,
} from './personas/persona.ts';
export {
  ModelStepArgs,
  PERSONA_SERVICE_BOUNDS,
  PERSONA_TOOL_SOURCE,
  PersonaAnnouncement,
  PersonaPause,
  versionToken,
} from './personas/persona-services.ts';
export { PersonaStepInput } from './personas/persona-steps.ts';
export { costNanoUsd, nanoUsdOf, PinnedPrice, PriceTable, pinnedPrice, usdOf } from './personas/prices.ts';
export {
  labelText,
  noticeText,
  PROMPT_MARKS,
  reminderText,
  summaryText,
  systemWithMarks,
  untrustedText,
} from './personas/prompt-marks.ts';
export { LOAD_SKILL, SKILL_FILE, Skill, SkillFile, skillIndex } from './personas/skills.ts';
export { ErrorBoundary, readStepArgs, Step, StepArgs, StepStatus } from './personas/steps.ts';
export { StopCondition, textStops } from './personas/stop-conditions.ts';
// served/: heartbeats, requests, orders and reports of served work, and its observation
export { Heartbeat, QUEUE_GROUPS, SERVED_LIVENESS, type ServedKind } from './served/heartbeats.ts';
export type { StartedWork, WorkObserver } from './served/observe-work.ts';
export { type CallEnding, cancelledCall, failedCall, type RunnableCall } from './served/runnable-call.ts';
export {
  isKeyOf,
  isQuestion,
  SERVED_BOUNDS,
  WorkEnded,
  WorkEndHead,
  WorkFetch,
  WorkOrder,
  WorkReport,
  WorkRequest,
} from './served/work.ts';
// tools/: definitions, calls and results
export { CallStatus, DEFAULT_TRAITS, SESSION_LEFT, ToolDefinition, ToolTraits } from './tools/calls.ts';
export {
  DELEGATE_TOOL,
  type DelegateArgs,
  HANDOFF,
  HANDOFF_TOOL,
  type HandoffArgs,
  SEND_MESSAGE_TOOL,
  SESSION_SOURCE,
  type SendMessageArgs,
} from './tools/crew-tools.ts';
export { conditionHolds, globMatches, hookPatternMatches, parseHookPattern } from './tools/patterns.ts';
export { APPROVAL_CHECK_MS, type ToolApprovalContext, type ToolCallContext } from './tools/tool-call-context.ts';
export {
  type InputSchema,
  LATER,
  readTool,
  type Tool,
  type ToolAnswer,
  ToolDefinitionError,
  toolAnswerToWire,
} from './tools/tool-declarations.ts';
export { StandIns, ToolSelection } from './tools/tool-selection.ts';
export {
  BusToolName,
  ToolAnnouncement,
  toolDigest,
} from './tools/tool-services.ts';
// wire/: subjects, ids, JSON, names and bounds
export { type BackOff, BOUNDS, CONNECTION_LIVENESS, delayAfter, EVENT_STREAM_LIVENESS } from './wire/bounds.ts';
export { canonicalJson } from './wire/canonical-json.ts';
export { type CamelCased, camelName, fromWire, pathFromWire, toWire } from './wire/casing.ts';
export { CONTEXT_NAME, CONTEXTS_MAX, ContextsFile } from './wire/contexts-file.ts';
export { AnswerCursor, AnswerPieces, AnswerPlace, AnswerSoFar, Delta } from './wire/deltas.ts';
export { SessionTreeNames, UiEventNames, UsageReportNames } from './wire/document-names.ts';
export {
  ActiveNote,
  HOST_LIVENESS,
  HostBeat,
  type HostLiveness,
  HostRelease,
  HostRing,
  RetentionAnswer,
} from './wire/hosts.ts';
export {
  CommandId,
  DEFAULT_TENANT,
  fingerprint,
  HostName,
  ID_PATTERN,
  positionalCommandId,
  readId,
  SessionId,
  type SessionRef,
  sessionKey,
  sessionRef,
  TenantId,
} from './wire/ids.ts';
export { assertNever, BlobRef, escapePointerKey, Json, JsonObject, Reason, WrapperObject } from './wire/json.ts';
export { KeyEntry, KeyName, KeyringFile } from './wire/keyring-file.ts';
export { binaryMediaType, SNIFF_BYTES, shownMediaType, utf8Of } from './wire/media-types.ts';
export { readNatsAddress } from './wire/nats-address.ts';
export { nearestWord } from './wire/nearest-word.ts';
export { BLOB_SUBJECTS, BLOBS_STREAM, deletedAbout, readAbout, readStoredBlob } from './wire/object-store.ts';
export { type RegexBudget, regexBudget, regexMatches, regexProblem } from './wire/regular-expressions.ts';
export {
  pathText,
  problemSentences,
  readStrictly,
  type SchemaProblem,
  type StrictlyRead,
} from './wire/schema-problems.ts';
export { parseStrictJson } from './wire/strict-json.ts';
export {
  COMPRESSED_BLOCKS,
  fnv1a32,
  HEADERS,
  INTERNAL_VERBS,
  isAnswerSubject,
  isInboxSubject,
  isReceiptSubject,
  isTenantsInbox,
  JOURNAL_STREAMS,
  journalStreamOf,
  MISADDRESSED_COMMANDS,
  PARTITIONS,
  PARTITIONS_PER_JOURNAL_STREAM,
  parseActiveSession,
  parseJournalSubject,
  parseLargeField,
  parsePublishedCommand,
  parseQuery,
  parseRememberedRule,
  parseServedKey,
  parseSessionEntry,
  parseStoredCommand,
  parseTenantKeys,
  partitionOf,
  publishedAs,
  REWRITE_REPLICAS,
  STREAMS,
  subjects,
  systemSubjects,
  TENANT_KEYS,
  tenantSubjects,
  unroutableField,
} from './wire/subjects.ts';
export { formatTraceparent, parseTraceparent, type TraceContext } from './wire/trace-context.ts';
export {
  cutGraphemes,
  cutMiddle,
  cutText,
  cutTextToEnd,
  hasVisibleText,
  PieceJoiner,
  toWellFormed,
} from './wire/unicode-text.ts';
export { unwritableMember, unwritableProblem } from './wire/unwritable-json.ts';
export { VERSION } from './wire/version.ts';
