/** Every bound of the MCP server. What happens at one is a tool error with a code, or a text that says that it is cut. */
export const MCP_SERVER_BOUNDS = {
  /** One message of the client; a longer one ends the connection. */
  messageMaxBytes: 1024 * 1024,
  /** Calls that are worked on at once; one more is refused (`too_many_queries`). */
  callsAtOnceMax: 64,
  /** How long a command may take to be accepted. */
  acceptedWithinMs: 20_000,
  /** How long a steer may take to be delivered where that is waited for, and a wait may take; and when nothing is said. */
  waitMaxMs: 600_000,
  waitDefaultMs: 45_000,
  /** So often a wait tells that it goes on, where the client asks for progress. */
  progressEveryMs: 5_000,
  /** Sessions of a list, approvals of a list, events of a page; and what it is without a limit. */
  sessionsMax: 100,
  sessionsDefault: 25,
  approvalsMax: 100,
  eventsMax: 200,
  eventsDefault: 50,
  /** A page of events as JSON, and one text in it. */
  eventsMaxBytes: 48 * 1024,
  eventTextMaxChars: 2_000,
  /** The answer of a run. */
  answerMaxChars: 48 * 1024,
  /** Other texts: what waits, arguments of calls as JSON, reasons. */
  textMaxChars: 4_000,
  argsMaxChars: 16 * 1024,
  /** Entries of lists within a session: what waits, calls, approvals. */
  entriesMax: 50,
  /** Sessions of a tree. */
  treeMax: 200,
  /** A transcript, and one text in it. */
  transcriptMaxChars: 256 * 1024,
  transcriptTextMaxChars: 16 * 1024,
  /** Personas of a list. */
  personasMax: 200,
} as const;
