/**
 * Limits of the MCP server. Beyond them, a tool returns an error with a code, or a text or list that is marked as cut.
 */
export const MCP_SERVER_BOUNDS = {
  /** One message of the client. A longer one ends the connection. */
  messageMaxBytes: 1024 * 1024,
  /** Concurrent calls. A further one is rejected (`too_many_queries`). */
  callsAtOnceMax: 64,
  /** Time limit for the acceptance of a command. */
  acceptedWithinMs: 20_000,
  /** Maximum and default time limit of `wait_for`, and of a steer that waits for its delivery. */
  waitMaxMs: 600_000,
  waitDefaultMs: 45_000,
  /** Interval of progress notifications during a wait, if the client asks for progress. */
  progressEveryMs: 5_000,
  /**
   * Maximum and default number of sessions in a list and of events in a page; maximum number of approvals in a list.
   */
  sessionsMax: 100,
  sessionsDefault: 25,
  approvalsMax: 100,
  eventsMax: 200,
  eventsDefault: 50,
  /** Size of a page of events as JSON, and of one text in it. */
  eventsMaxBytes: 48 * 1024,
  eventTextMaxChars: 2_000,
  /** The answer of a run. */
  answerMaxChars: 48 * 1024,
  /** Other texts, such as queued messages and reasons; and arguments of calls as JSON. */
  textMaxChars: 4_000,
  argsMaxChars: 16 * 1024,
  /** Entries of lists within a session: queued messages, calls, approvals, children. */
  entriesMax: 50,
  /** Sessions of a tree. */
  treeMax: 200,
  /** A transcript, and one text in it. */
  transcriptMaxChars: 256 * 1024,
  transcriptTextMaxChars: 16 * 1024,
  /** Personas of a list. */
  personasMax: 200,
} as const;
