/**
 * The bounds that users can reach, and those that several files share. A bound of one algorithm is a constant of its
 * file. The names contain the units. docs/operations/bounds.md lists what happens at the most important bounds.
 */
export const BOUNDS = {
  /** Body of one command, as published. */
  commandBodyMaxBytes: 256 * 1024,
  /** Queued injections (steers, reminders, follow-ups) of one session. */
  pendingInjectionsMax: 1_000,
  /** Texts of the queued injections of one session together, in UTF-8. */
  pendingInjectionsMaxBytes: 1024 * 1024,
  /** Reminders of one session, queued or shown. */
  remindersLiveMax: 256,
  /** Texts of the queued and shown reminders of one session together, in UTF-8. */
  remindersLiveMaxBytes: 1024 * 1024,
  /** Signals that one session stores until a suspension waits for them. */
  signalsStoredMax: 64,
  /** Data of one signal, as JSON. */
  signalDataMaxBytes: 8 * 1024,
  /** Maximum time until the end of a suspension, a wake or the expiry of an approval: ten years. */
  longWaitMaxMs: 10 * 365 * 24 * 60 * 60 * 1_000,
  /** The shortest wake interval of a daemon session. */
  wakeIntervalMinMs: 1_000,
  /** Commands that a new owner of a session reads from its inbox in one batch, before the stream delivers them. */
  inboxCatchUpMax: 128,
  /** Queued inbox feedback of one session. Further feedback is counted, and the model gets the number. */
  feedbackPendingMax: 64,
  /** One piece of inbox feedback, as JSON in UTF-8. Longer feedback is truncated, with a note. */
  feedbackBodyMaxBytes: 2 * 1024,
  /** Identical calls in a row after which the model is notified. */
  stallIdenticalCalls: 3,
  /** Turns in a row without a new result after which the model is notified. */
  stallTurnsWithoutNewResult: 10,
  /** Newest distinct results of a run that stall detection remembers. */
  stallResultsRemembered: 128,
  /** A free-text reason, such as of a cancel, a denial or a suspension. */
  reasonMaxBytes: 2 * 1024,
  /** Calls in one batch. Further calls get error results. */
  callsPerBatchMax: 64,
  /**
   * Arguments of one batch together, as JSON in UTF-8. A call beyond that loses its arguments and gets an error result.
   */
  batchArgsMaxBytes: 768 * 1024,
  /** JSON Schema of a final answer, as JSON in UTF-8. The system prompt contains it. */
  outputSchemaMaxBytes: 32 * 1024,
  /** Subschemas of the JSON Schema of a final answer, with every `$ref` written out. */
  outputSchemasMax: 2_000,
  /** JSON of a final answer with a schema, in UTF-8. Its record contains the value twice. */
  outputMaxBytes: 128 * 1024,
  /** Values in the JSON of a final answer with a schema: objects, lists and what they contain. */
  outputValuesMax: 10_000,
  /** Model turns for the repair of one final answer: default and maximum. */
  outputRepairsDefault: 2,
  outputRepairsMax: 8,
  /** Problems of one answer that the model gets, and the length of one problem. */
  outputProblemsMax: 8,
  outputProblemMaxChars: 300,
  /** Text of a tool result in its record. A longer text is truncated there; the object store keeps all of it. */
  toolResultInlineMaxBytes: 64 * 1024,
  /** Minimum of `max_output` of a tool, its own limit for the text of a result in the record. */
  toolResultInlineMinBytes: 1_024,
  /** Text of one result. A call that returns more ends with an error. */
  toolResultKeptMaxBytes: 16 * 1024 * 1024,
  /** Files of one result together, before base64. Further files are omitted, with a note. */
  toolResultFilesMaxBytes: 8 * 1024 * 1024,
  /**
   * Texts of one result, and files of one result. More texts are joined to one; further files are omitted, with a note.
   */
  toolResultPartsMax: 256,
  /** Machine-readable detail of a result, as JSON. Of a larger one only the code stays. */
  toolDetailMaxBytes: 64 * 1024,
  /**
   * Stored files of tool results in one model request, before base64: the newest ones. The request names the others.
   */
  shownFilesMaxBytes: 24 * 1024 * 1024,
  /** One field of a record. A larger field becomes a blob. */
  fieldInlineMaxBytes: 64 * 1024,
  /** One record. */
  recordMaxBytes: 512 * 1024,
  /** Payload of a hook, and its return value. That of transform_context has its own bound. */
  hookPayloadMaxBytes: 256 * 1024,
  /** Command ids that a session remembers, so that a repeated command changes nothing. */
  commandIdsRemembered: 4_096,
  /**
   * Rejections of one session that get a record, and the number of newest commands among which they are counted.
   * Further rejections of clients' commands are answered and counted only, so that invalid commands cannot fill the
   * journal.
   */
  rejectionsRecordedMax: 64,
  rejectionWindowCommands: 256,
  /** Turns of one run if neither its start nor its persona gives a limit. */
  maxTurnsDefault: 50,
  /** Edited files that one call may report. Further ones are dropped. */
  editedPathsPerCallMax: 64,
  /** Files of one turn that file_edited hooks receive. Further ones are only in the journal. */
  editedPathsPerTurnMax: 256,
  /** One line of an exported journal. */
  exportLineMaxBytes: 64 * 1024 * 1024,
  /** Memory for the objects of an exported journal while it is read, bytes. */
  exportedBlobsMaxBytes: 128 * 1024 * 1024,
  /** Minimum age of an unreferenced object before deletion: a later record may still refer to it. */
  unusedBlobKeptMs: 24 * 60 * 60 * 1_000,
  /** Records of a session that a fork may copy. */
  forkRecordsMax: 10_000,
  /** Earlier origins that a copied journal names: the newest ones. */
  originsNamedMax: 16,
  /** Time that an aborted call or model answer has to stop before the session continues without it. */
  abortGraceMs: 5_000,
  /**
   * Restarts of a model call, or of the model step of a compaction, by a new owner of the session (after a crash, a
   * deploy, a hand-over). Then a model call fails its run, and a compaction continues as after any failure of its model
   * step (`afterFailedSummary` in libs/turn).
   */
  modelRestartsMax: 10,
  /** Delay before the third restart of a model call, doubled for each further one. The first two have no delay. */
  modelRestartBackoffMs: 250,
  /** Maximum delay before a restart of a model call. */
  modelRestartBackoffMaxMs: 30_000,
  /** Nesting depth of JSON, such as arguments, metadata and return values of hooks. */
  jsonDepthMax: 128,
  /** Length of a pattern: a glob, a condition, or a regular expression. */
  patternMaxChars: 512,
  /**
   * Size of a compiled regular expression, in instructions. The compiler expands counted repeats, and each instruction
   * may cost time at each character.
   */
  regexInstructionsMax: 1_000,
  /**
   * Cost of the regular expressions that are evaluated together, such as all rules for one call: characters times
   * instructions. At worst a million takes 100 ms.
   */
  regexStepsMax: 16_000_000,
  /** Remembered rules of one session, or of one persona. */
  rememberedRulesMax: 128,
  /** The match of one remembered rule, as JSON. */
  rememberedMatchMaxBytes: 4 * 1024,
  /** Minimum expiry time of an approval. */
  approvalExpiryMinMs: 1_000,
  /** Permission rules of one persona. */
  permissionRulesMax: 256,
  /** Tools of one session. Further ones are left out. */
  toolsMax: 512,
  /** Maximum number of turns that a compaction may keep as they are. */
  keepTurnsMax: 100,
  /** Summary or notes of one compaction. A longer text is truncated. */
  summaryMaxChars: 32 * 1024,
  /** Return value of a transform_context hook, with the messages that it keeps. */
  transformedViewMaxBytes: 32 * 1024 * 1024,
  /** New messages of transform_context hooks in one request, as JSON. Kept messages are not counted. */
  transformedMessagesMaxBytes: 64 * 1024,
  /** Hook registrations of one session. */
  hooksMax: 256,
  /** Hooks of one persona. */
  personaHooksMax: 32,
  /** Maximum timeout of a persona's own hook. */
  personaHookTimeoutMaxMs: 60_000,
  /** The declared `returns` of a hook, as JSON. */
  hookReturnsMaxBytes: 4_096,
  /** Maximum timeout of a hook. */
  hookTimeoutMaxMs: 600_000,
  /** Reminders in one return value of a hook. */
  remindersPerReturnMax: 32,
  /**
   * Open jobs of the hooks of one session. A further one replaces the oldest one (`job_untracked`). Also the job
   * reports that are deferred to the end of one consult.
   */
  jobsOpenMax: 64,
  /** Paths, and ids of artifacts, of one job receipt. */
  receiptListMax: 256,
  /** `metadata` of a job receipt, as JSON. */
  receiptMetadataMaxBytes: 16 * 1024,
  /** Rows of a price table. */
  pricesMax: 1_024,
  /** MCP servers of one session, from its persona and its start together. */
  mcpServersMax: 64,
  /** Stop conditions of one persona. */
  stopConditionsMax: 32,
  /** Skills of one persona. */
  skillsMax: 64,
  /** Files of one skill, without its SKILL.md. */
  skillFilesMax: 64,
  /** Skills of one persona together: a start contains all of them. */
  skillsMaxBytes: 192 * 1024,
  /** Declared steps of one persona. */
  stepsMax: 64,
  /** Prompt of one step. */
  stepPromptMaxChars: 16 * 1024,
  /** Timeout of a predicate of a stop condition. */
  predicateTimeoutMs: 5_000,
  /**
   * Time that a model step waits for an instance of its persona: the default, if neither start nor persona gives a
   * limit, and the maximum of such a limit.
   */
  waitForPersonaMs: 600_000,
  waitForPersonaMaxMs: 30 * 24 * 60 * 60 * 1_000,
  /** Attempts of a model step whose instances are lost one after another. Then the step fails. */
  stepTriesMax: 10,
  /** Maximum and default of open child sessions of one session. */
  childrenMax: 64,
  childrenDefault: 16,
  /** Maximum and default of generations below a session. */
  depthMax: 8,
  depthDefault: 3,
  /** Messages between sessions in one causal chain. */
  hopsMax: 16,
  /** Maximum number of consecutive hand-offs without a new message, and length of the briefing for the next persona. */
  handoffsMax: 16,
  briefMaxChars: 32 * 1024,
  /** Maximum number of restarts of a failed child session. */
  restartsMax: 3,
  /** Personas in one start, for delegation. */
  crewMax: 32,
  /** Reminders that a child session inherits, as JSON. Further reminders are omitted and counted. */
  inheritedRemindersMaxBytes: 64 * 1024,
  /**
   * Answer of a child in its report to the parent; a UTF-16 unit counts as four bytes. The child's journal keeps all of
   * a longer answer.
   */
  childAnswerMaxBytes: 128 * 1024,
  /** Delay before a command to another session is sent again: first and maximum. */
  crewResendMs: 250,
  crewResendMaxMs: 30_000,
  /** Name of an actor. */
  actorMaxChars: 256,
} as const;

/**
 * Detection of dead connections. A stopped server, a machine without power and a cut cable send nothing, so the
 * connection looks open. The client sends a ping every `pingMs`, and reconnects to another server after `unansweredMax`
 * pings without an answer: after four to six seconds, about the time of a leader election. The defaults of the library
 * take over four minutes.
 */
export const CONNECTION_LIVENESS = { pingMs: 2_000, unansweredMax: 2 } as const;

/**
 * Heartbeat interval of a gateway's event stream, and the silence after which a reader reconnects. A network partition
 * closes no connection, so silence is its only sign. A console shows the partition within three seconds.
 */
export const EVENT_STREAM_LIVENESS = { heartbeatMs: 1_000, silenceMaxMs: 2_500 } as const;

/**
 * The first delay between attempts and the longest, in milliseconds. Each delay is twice the one before, up to the
 * longest.
 */
export interface BackOff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** The delay after a number of failed attempts, in milliseconds. @param failures at least 1. */
export function delayAfter(failures: number, { firstMs, maxMs }: BackOff): number {
  return Math.min(firstMs * 2 ** (failures - 1), maxMs);
}
