import { BOUNDS } from '@coxswain/protocol';

/**
 * Limits of the MCP adapter. Options of {@link createMcpTools} change `startTimeoutMs`, `callTimeoutMs` and
 * `restartsMax`.
 */
export const MCP_BOUNDS = {
  /** Time limit from the start of a server to its list of tools. */
  startTimeoutMs: 30_000,
  /** Time limit of one call. Each progress report of the server restarts it. */
  callTimeoutMs: 3_600_000,
  /** Consecutive restarts of a server process without an answered call. */
  restartsMax: 5,
  /** Grace period between closing a server's input and SIGTERM, between SIGTERM and SIGKILL, and after SIGKILL. */
  stopGraceMs: 2_000,
  /** Time for reading the last output of an ended server. */
  drainMs: 1_000,
  /** The end of a server's stderr that is kept for messages. */
  stderrTailMaxChars: 2_048,
  /** Maximum size of one message of a server. */
  messageMaxBytes: 10 * 1024 * 1024,
  /** The beginning of the body of an HTTP error that is read. The rest is not received. */
  errorMaxBytes: 64 * 1024,
  /** Concurrent answers to requests of one HTTP server, such as pings. Further requests get none. */
  serverAnswersAtOnceMax: 16,
  /**
   * Requests to one HTTP server that it has not answered to the end, with event streams. A batch has at most 64 calls. A
   * server may answer a request on another stream and leave its connection open.
   */
  requestsOpenMax: 128,
  /** Time after the end of a call after which its HTTP request is ended, if the server has not ended it. */
  endedCallMs: 1_000,
  /** Minimum interval between two requests for an event stream of one HTTP server, whatever its `retry` says. */
  streamIntervalMs: 100,
  /**
   * Messages and bytes per second on the event streams of one HTTP server, together. Faster streams are read more
   * slowly.
   */
  streamMessagesPerSecond: 1_000,
  streamBytesPerSecond: 16 * 1024 * 1024,
  /** Answers to requests of one stdio server, such as pings, that it has not read yet. Further requests get none. */
  unreadAnswersMax: 1_024,
  /** Maximum size of these answers together. */
  unreadAnswersMaxBytes: 1024 * 1024,
  /** Pages of one list of tools. */
  listPagesMax: 64,
  /** Maximum size of the lists of tools of one session as JSON, with all their pages. Its servers share it equally. */
  listMaxBytes: 16 * 1024 * 1024,
  /** Servers of one session. */
  serversMax: BOUNDS.mcpServersMax,
  /** Tools of one server. */
  serverToolsMax: 2_048,
  /** Maximum size of one tool's schema as JSON. */
  schemaMaxBytes: 256 * 1024,
  descriptionMaxChars: 16_384,
  /**
   * Maximum size of one result's text, and separately of its files in base64. The session truncates results further,
   * and stores the whole text.
   */
  resultTextMaxBytes: 4 * 1024 * 1024,
  resultFilesMaxBytes: 8 * 1024 * 1024,
  /** Maximum size of structured content in the result's detail. Larger content is omitted, and its size is reported. */
  structuredMaxBytes: 64 * 1024,
  /** The beginning of the reason why a result is invalid. */
  invalidResultMaxChars: 1_024,
  noticeMaxChars: 2_048,
  progressMaxChars: 1_024,
  /** Minimum interval between two shown progress reports of a call. Of those in between, the newest is shown. */
  progressIntervalMs: 100,
} as const;
