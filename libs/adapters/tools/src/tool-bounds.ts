import { BOUNDS } from '@coxswain/protocol';

/** Limits of the built-in tools. Options of {@link createBuiltInTools} change some of them. */
export const TOOL_BOUNDS = {
  /** Maximum size of one result as JSON without its files: a result of this size is not truncated in its record. */
  resultMaxBytes: BOUNDS.toolResultInlineMaxBytes,
  /** The part of it for the frame around the text, the notes and the detail. */
  resultFrameMaxBytes: 4 * 1024,
  /** Default size of one piece of a truncated result. */
  resultPieceDefaultBytes: 32 * 1024,
  /** Maximum size of the kept beginning of a command's output. The end of a longer output is kept as well. */
  commandKeptMaxBytes: 8 * 1024 * 1024,
  /** Maximum size of a file that is returned whole (images, other binary files), before base64. */
  fileMaxBytes: 4 * 1024 * 1024,
  /** Maximum size of a file for writing and editing. */
  writeMaxBytes: 8 * 1024 * 1024,
  /** Maximum number of bytes that read_file skips to find the requested lines. */
  readScanMaxBytes: 256 * 1024 * 1024,
  /** Default number of lines of read_file. */
  readLinesDefault: 2_000,
  readLinesMax: 100_000,
  /** The longest path of common systems. */
  pathMaxChars: 4_096,
  globMaxChars: 512,
  /** Maximum number of globs that the braces of one glob expand to. */
  globAlternativesMax: 64,
  /** Maximum depth below the start of a walk. */
  walkDepthMax: 64,
  /** Maximum number of entries of one folder. A larger folder is rejected, and the error names it. */
  folderEntriesMax: 50_000,
  /** Maximum number of entries of one walk. */
  walkEntriesMax: 200_000,
  /**
   * The characters of paths that a walk visits between two turns of other sessions. Matching one path cannot be
   * interrupted, and its time grows with its length.
   */
  walkTurnChars: 512,
  listEntriesDefault: 1_000,
  listEntriesMax: 10_000,
  searchMatchesDefault: 100,
  searchMatchesMax: 1_000,
  /** A larger file is not searched. The result has the number of these files. */
  searchFileMaxBytes: 8 * 1024 * 1024,
  /** Maximum number of bytes of one search. */
  searchScanMaxBytes: 256 * 1024 * 1024,
  /** The searched prefix of a line. Matching one line cannot be interrupted. */
  searchLineScanMaxChars: 64 * 1024,
  /** The shown prefix of a matching line. */
  searchLineMaxChars: 400,
  commandMaxChars: 64 * 1024,
  commandTimeoutDefaultMs: 120_000,
  commandTimeoutMaxMs: 3_600_000,
  /** The time between SIGTERM and SIGKILL. */
  commandKillGraceMs: 2_000,
  /** The time for leftover processes of a command to end by themselves. */
  commandLeftoverGraceMs: 1_000,
  /** Maximum number of concurrent commands of one command runner. */
  commandsAtOnceMax: 64,
  /** Maximum size of one frame between a host and a command runner. */
  commandFrameMaxBytes: 1024 * 1024,
  /**
   * The time limit of a host and a command runner for a connection, its first frame, and the delivery of the last one.
   */
  commandRequestWithinMs: 10_000,
  /** The time for the runner's answer after the timeout of a command or a cancellation. */
  commandAnswerGraceMs: 30_000,
  /** The minimum interval between progress messages of a command. */
  commandProgressIntervalMs: 200,
  commandProgressMaxChars: 4_096,
  urlMaxChars: 8_192,
  fetchTimeoutMs: 30_000,
  fetchRedirectsMax: 5,
} as const;
