/** Every bound of the MCP adapter. Options of {@link createMcpTools} change those that a host may set. */
export const MCP_BOUNDS = {
  /** From starting a server to having its list of tools. */
  startTimeoutMs: 30_000,
  /** One call, begun anew with each progress that the server reports. */
  callTimeoutMs: 3_600_000,
  /** Restarts of one server in a row without a call that it answered. */
  restartsMax: 5,
  /** From closing a server's input to SIGTERM, from there to SIGKILL, and from there to giving up. */
  stopGraceMs: 2_000,
  /** How long what a dead server wrote last is still read. */
  drainMs: 1_000,
  /** Of a server's stderr the end is kept, to be quoted. */
  stderrTailMaxChars: 2_048,
  /** One message of a server. */
  messageMaxBytes: 10 * 1024 * 1024,
  /** Pages of one list of tools. */
  listPagesMax: 64,
  /** Tools of one server. */
  serverToolsMax: 2_048,
  /** One tool's schema, as JSON. */
  schemaMaxBytes: 256 * 1024,
  descriptionMaxChars: 16_384,
  /** One result's text and, apart from it, its files in base64. The session cuts further, and keeps the whole. */
  resultTextMaxBytes: 4 * 1024 * 1024,
  resultFilesMaxBytes: 8 * 1024 * 1024,
  /** Structured content that is passed on as detail; a larger one is left out, and that is said. */
  structuredMaxBytes: 64 * 1024,
  noticeMaxChars: 2_048,
  progressMaxChars: 1_024,
} as const;
