/** Every bound of the system in one place. Units are in the names; what happens at a bound is in the error catalogue. */
export const BOUNDS = {
  /** One command's body, as published. */
  commandBodyMaxBytes: 256 * 1024,
  /** Injections (steers, reminders, follow-ups) that wait in one session. */
  pendingInjectionsMax: 1_000,
  /** The texts of these injections together, in UTF-8. */
  pendingInjectionsMaxBytes: 1024 * 1024,
  /** Reminders of one session that wait or are shown. */
  remindersLiveMax: 256,
  /** The texts of these reminders together, in UTF-8. */
  remindersLiveMaxBytes: 1024 * 1024,
  /** Signals that wait in one session for a suspension that waits for them. */
  signalsStoredMax: 64,
  /** The data of one signal, as JSON. */
  signalDataMaxBytes: 8 * 1024,
  /** How far away the end of a suspension may be: ten years. */
  parkMaxMs: 10 * 365 * 24 * 60 * 60 * 1_000,
  /** The shortest wake interval of a daemon session. */
  wakeIntervalMinMs: 1_000,
  /** Commands that a session's next host reads at once, before their deliveries come to it. */
  inboxCatchUpMax: 128,
  /** Queued inbox feedback of one session. Further feedback is counted, and the model gets the number. */
  feedbackPendingMax: 64,
  /** One piece of inbox feedback, as JSON in UTF-8; a longer one is cut, and says so. */
  feedbackBodyMaxBytes: 2 * 1024,
  /** Identical calls in a row after which the model is notified. */
  stallIdenticalCalls: 3,
  /** Turns in a row without a new result after which the model is notified. */
  stallTurnsWithoutNewResult: 10,
  /** Results that are known again: the newest different ones of a run. */
  stallResultsRemembered: 128,
  /** Free-text reasons: of a cancel, a denial, a suspension. */
  reasonMaxBytes: 2 * 1024,
  /** Calls in one batch; the calls beyond it get error results. */
  callsPerBatchMax: 64,
  /** The arguments of one batch together, as JSON in UTF-8; calls beyond it get error results and lose their arguments. */
  batchArgsMaxBytes: 768 * 1024,
  /** A JSON Schema of a final answer, as JSON in UTF-8: the system prompt contains it. */
  outputSchemaMaxBytes: 32 * 1024,
  /** Subschemas of such a schema, with every `$ref` written out. */
  outputSchemasMax: 2_000,
  /** The JSON of a final answer with a schema, in UTF-8: its record contains the value twice. */
  outputMaxBytes: 128 * 1024,
  /** Values in that JSON: objects, lists and what they contain. */
  outputValuesMax: 10_000,
  /** Model turns that may be spent on repairing one final answer, if nothing else is set; and the most that can be set. */
  outputRepairsDefault: 2,
  outputRepairsMax: 8,
  /** Problems of one answer that the model is shown, and the length of one. */
  outputProblemsMax: 8,
  outputProblemMaxChars: 300,
  /** A tool result that stays in its record; a larger one is cut, the whole goes to the object store. */
  toolResultInlineMaxBytes: 64 * 1024,
  /** The least that `max_output` may leave of a result. */
  toolResultInlineMinBytes: 1_024,
  /** The text of one result that is kept whole; a call that gives more ends with an error. */
  toolResultKeptMaxBytes: 16 * 1024 * 1024,
  /** The files of one result together, before base64; those beyond are left out, and a note says so. */
  toolResultFilesMaxBytes: 8 * 1024 * 1024,
  /** Parts of one result; the texts of one that has more are joined, and files beyond are left out. */
  toolResultPartsMax: 256,
  /** The machine-readable detail of a result, as JSON. */
  toolDetailMaxBytes: 64 * 1024,
  /** Files that one request shows a model, before base64: the newest of them; the others are named. */
  shownFilesMaxBytes: 24 * 1024 * 1024,
  /** A field of a record; a larger one becomes a blob. */
  fieldInlineMaxBytes: 64 * 1024,
  /** One record. */
  recordMaxBytes: 512 * 1024,
  /** What a hook is sent, and what it returns. */
  hookPayloadMaxBytes: 256 * 1024,
  /** Command ids that a session remembers, so that a repeated command changes nothing. */
  commandIdsRemembered: 4_096,
  /**
   * Rejections among the newest commands of a session that get a record, and how many commands are looked at. A rejection
   * beyond that is answered and counted, so that a sender of invalid commands does not fill the journal.
   */
  rejectionsRecordedMax: 64,
  rejectionWindowCommands: 256,
  /** Turns of one run when the persona does not say. */
  maxTurnsDefault: 50,
  /** Files that one call may say it has edited; those beyond are dropped. */
  editedPathsPerCallMax: 64,
  /** Files of one turn that file_edited hooks receive. The journal contains further ones. */
  editedPathsPerTurnMax: 256,
  /** One line of an exported journal. */
  exportLineMaxBytes: 64 * 1024 * 1024,
  /** Memory for stored objects of an exported journal while it is read, bytes. */
  exportedBlobsMaxBytes: 128 * 1024 * 1024,
  /** Age up to which an unreferenced object stays in the object store: a record may still refer to it. */
  unusedBlobKeptMs: 24 * 60 * 60 * 1_000,
  /** Records of a session that a fork may copy. */
  forkRecordsMax: 10_000,
  /** Origins before its own that a copied journal names: the newest of them. */
  originsNamedMax: 16,
  /** Grace between the abort signal and giving a call or a model answer up. */
  abortGraceMs: 5_000,
  /** How often a model call is started again after crashes of its host before the run fails. */
  modelRestartsMax: 10,
  /** Delay before the third start of a model call, doubled for each further start. */
  modelRestartBackoffMs: 250,
  /** The longest such wait. */
  modelRestartBackoffMaxMs: 30_000,
  /** How deep JSON may be nested: arguments, metadata, what hooks return. */
  jsonDepthMax: 128,
  /** Length of a regular expression in a pattern. */
  patternMaxChars: 512,
  /** What a regular expression may become, in instructions: counted repeats are written out, and each may cost time at each character. */
  regexInstructionsMax: 1_000,
  /** Rules that people have had one session remember, or one persona. */
  rememberedRulesMax: 128,
  /** What one of them says of the calls that it is about, as JSON. */
  rememberedMatchMaxBytes: 4 * 1024,
  /** How soon an approval may expire. */
  approvalExpiryMinMs: 1_000,
  /** Permission rules of one persona. */
  permissionRulesMax: 256,
  /** Tools of one session. */
  toolsMax: 512,
  /** Turns that a compaction may be told to leave as they are. */
  keepTurnsMax: 100,
  /** What a pass's summary or notes may have; a longer answer is cut. */
  summaryMaxChars: 32 * 1024,
  /** What a transform_context hook may return, what it keeps included. */
  transformedViewMaxBytes: 32 * 1024 * 1024,
  /** Messages of its own that transform_context hooks may put into one request, as JSON; what they keep is not counted. */
  transformedMessagesMaxBytes: 64 * 1024,
  /** Hook registrations that one session sees. */
  hooksMax: 256,
  /** Hooks that one persona has. */
  personaHooksMax: 32,
  /** Maximum timeout of a handler of a persona's own hook. Persona services allow little more for their answer. */
  personaHookTimeoutMaxMs: 60_000,
  /** What a hook's `returns` has, as JSON. */
  hookReturnsMaxBytes: 4_096,
  /** How long one hook may take at most. */
  hookTimeoutMaxMs: 600_000,
  /** Reminders in one return of a hook. */
  remindersPerReturnMax: 32,
  /** Open jobs of the hooks of one session. The session does not wait for further ones. */
  jobsOpenMax: 64,
  /** Paths, and ids of artifacts, that one job receipt may name. */
  receiptListMax: 256,
  /** What a job receipt may say of itself under `metadata`, as JSON. */
  receiptMetadataMaxBytes: 16 * 1024,
  /** Rows of a table of prices. */
  pricesMax: 1_024,
  /** Stop conditions of one persona. */
  stopConditionsMax: 32,
  /** Skills of one persona. */
  skillsMax: 64,
  /** Files of one skill, without its SKILL.md. */
  skillFilesMax: 64,
  /** The skills of one persona together: a start carries them whole. */
  skillsMaxBytes: 192 * 1024,
  /** Steps that one persona declares. */
  stepsMax: 64,
  /** What one of them tells the model. */
  stepPromptMaxChars: 16 * 1024,
  /** How long a predicate of a stop condition may take. */
  predicateTimeoutMs: 5_000,
  /**
   * Default and maximum time that a step waits for an instance of its persona, if neither start nor persona gives one.
   */
  waitForPersonaMs: 600_000,
  waitForPersonaMaxMs: 30 * 24 * 60 * 60 * 1_000,
  /** Maximum of restarts of a step after its instance was lost. Then the run fails. */
  stepTriesMax: 10,
  /** Maximum and default of open child sessions of one session. */
  childrenMax: 64,
  childrenDefault: 16,
  /** Maximum and default of generations below a session. */
  depthMax: 8,
  depthDefault: 3,
  /** Messages between sessions that may lead to one another. */
  hopsMax: 16,
  /** Maximum of consecutive hand-offs without a new message, and of the briefing for the next persona. */
  handoffsMax: 16,
  briefMaxChars: 32 * 1024,
  /** Maximum of restarts of a failed child session. */
  restartsMax: 3,
  /** Personas that may come with a start, for delegation. */
  crewMax: 32,
  /** Reminders with which a child is born, as JSON; those beyond are left out, and it is said how many. */
  inheritedRemindersMaxBytes: 64 * 1024,
  /** A child's answer as its parent is sent it; the rest of a longer one stays in the child's journal. */
  childAnswerMaxBytes: 128 * 1024,
  /** How long a command to another session waits before it is sent again, at first and at most. */
  crewResendMs: 250,
  crewResendMaxMs: 30_000,
  /** Actor names. */
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
 * Heartbeats of a gateway's event stream, and the silence after which a reader gives a connection up and makes another. A
 * lost network closes no connection: a console shows it within three seconds only by what it does not hear.
 */
export const EVENT_STREAM_LIVENESS = { heartbeatMs: 1_000, silenceMaxMs: 2_500 } as const;

/** The first delay between attempts and the longest, in milliseconds. Each delay is twice the one before. */
export interface BackOff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** The delay after so many failed attempts, in milliseconds. @param failures is at least 1. */
export function delayAfter(failures: number, { firstMs, maxMs }: BackOff): number {
  return Math.min(firstMs * 2 ** (failures - 1), maxMs);
}
