/** Limits of `cox acp` for one editor. Sizes in bytes or characters, times in ms, as the names say. */
export const ACP_BOUNDS = {
  /** One line of standard input, which is one protocol message. A longer line ends the connection. */
  lineMaxBytes: 8 * 1024 * 1024,
  /** The text and images of one prompt, embedded resources included. The limit of a command's body is 32 KiB higher. */
  promptMaxBytes: 224 * 1024,
  /** Content blocks of one prompt. */
  promptBlocksMax: 1_024,
  /** Open sessions of one connection. */
  sessionsMax: 256,
  /** Prompts of one session whose end the editor awaits. */
  promptsWaitingMax: 32,
  /** MCP servers of one session. */
  mcpServersMax: 64,
  /** Sessions on one page of a list. */
  listedPerPage: 50,
  /** Listed sessions whose starts are read concurrently, and starts kept in the cache. */
  startsAtOnce: 8,
  startsKept: 4_096,
  /** Characters of one result, of one side of a diff, or of a call's progress that the editor receives. */
  shownMaxChars: 64 * 1024,
  /** The wait of a request for a bus that is starting or reconnecting. */
  busWithinMs: 60_000,
  /** The time in which a session must accept a command. */
  acceptedWithinMs: 30_000,
  /** The wait for the outcome of a cancelled call, in addition to its grace period. */
  cancelSlackMs: 15_000,
  /** Saved sessions without a first prompt, saved choices for a next run, and how long they are kept. */
  unsentMax: 1_024,
  unsentKeptMs: 30 * 24 * 3_600_000,
  /** Records that are searched for the first prompt of a session. Rejected starts may precede it. */
  startWithinRecords: 64,
  /** Characters of a title in a list. */
  titleMaxChars: 120,
} as const;
