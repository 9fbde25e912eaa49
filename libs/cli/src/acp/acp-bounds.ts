/** What one editor may ask of `cox acp` at most. */
export const ACP_BOUNDS = {
  /** One line of standard input: a message of the protocol. A longer one ends the connection. */
  lineMaxBytes: 8 * 1024 * 1024,
  /** The text of one prompt, what is embedded in it included: a command's body has room for it, however it is escaped. */
  promptMaxBytes: 224 * 1024,
  /** Content blocks of one prompt. */
  promptBlocksMax: 1_024,
  /** Sessions that one connection has open. */
  sessionsMax: 256,
  /** Prompts of one session whose end the editor waits for. */
  promptsWaitingMax: 32,
  /** MCP servers of one session. */
  mcpServersMax: 64,
  /** Sessions of one page of a list. */
  listedPerPage: 50,
  /** Sessions of a list whose beginnings are read at once, and of how many it is remembered. */
  beginningsAtOnce: 8,
  beginningsKept: 4_096,
  /** Text of one result, of a diff's side, or of a call's progress, as the editor is shown it. */
  shownMaxChars: 64 * 1024,
  /** How long a request waits for a bus that is being started or found again. */
  busWithinMs: 60_000,
  /** How long a session may take to accept a command. */
  acceptedWithinMs: 30_000,
  /** How long a call that is to be cancelled may take to say how that went, on top of its grace. */
  cancelSlackMs: 15_000,
  /** Sessions without a first prompt, and choices for a next run, that are kept on disk, and for how long. */
  unsentMax: 1_024,
  unsentKeptMs: 30 * 24 * 3_600_000,
  /** The first prompt of a session is looked for in so many records. Rejected starts may precede it. */
  beginningWithinRecords: 64,
  /** Characters of a title in a list. */
  titleMaxChars: 120,
} as const;
