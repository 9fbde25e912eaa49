import { BOUNDS } from '@coxswain/protocol';

/** Every bound of the built-in tools. Options of {@link createBuiltInTools} change those that a host may set. */
export const TOOL_BOUNDS = {
  /** One result as JSON, files in it not counted: what stays in its record without being cut a second time. */
  resultMaxBytes: BOUNDS.toolResultInlineMaxBytes,
  /** Of that, what the frame around the text, the notes and the detail may take. */
  resultFrameMaxBytes: 4 * 1024,
  /** One piece of a result that is read on, when the call does not say. */
  resultPieceDefaultBytes: 32 * 1024,
  /** The beginning of a command's output that is kept whole, for reading on; of a longer one the end too. */
  commandKeptMaxBytes: 8 * 1024 * 1024,
  /** A file that is handed over whole (images, other binary files), before base64. */
  fileMaxBytes: 4 * 1024 * 1024,
  /** A file that is written, or read whole to be edited. */
  writeMaxBytes: 8 * 1024 * 1024,
  /** Bytes that read_file passes over to find the lines it was asked for. */
  readScanMaxBytes: 256 * 1024 * 1024,
  /** Lines of one read_file when the call does not say. */
  readLinesDefault: 2_000,
  readLinesMax: 100_000,
  /** Paths are longer on no common system. */
  pathMaxChars: 4_096,
  globMaxChars: 512,
  /** What the braces of one glob may spell out. */
  globAlternativesMax: 64,
  /** Folders below the one a walk starts from. */
  walkDepthMax: 64,
  /** Entries of one folder; a larger folder is refused by name. */
  folderEntriesMax: 50_000,
  /** Entries that one walk looks at. */
  walkEntriesMax: 200_000,
  listEntriesDefault: 1_000,
  listEntriesMax: 10_000,
  searchMatchesDefault: 100,
  searchMatchesMax: 1_000,
  /** A larger file is not searched; how many there were is said. */
  searchFileMaxBytes: 8 * 1024 * 1024,
  /** Bytes that one search reads. */
  searchScanMaxBytes: 256 * 1024 * 1024,
  /** A line is searched up to here: matching one line is work that cannot be interrupted. */
  searchLineScanMaxChars: 64 * 1024,
  /** A matching line is shown up to here. */
  searchLineMaxChars: 400,
  commandMaxChars: 64 * 1024,
  commandTimeoutDefaultMs: 120_000,
  commandTimeoutMaxMs: 3_600_000,
  /** From SIGTERM to SIGKILL. */
  commandKillGraceMs: 2_000,
  /** How long processes that a command left behind may still take to end by themselves. */
  commandLeftoverGraceMs: 1_000,
  /** Commands that one command runner runs at once. */
  commandsAtOnceMax: 64,
  /** One frame between a host and a command runner. */
  commandFrameMaxBytes: 1024 * 1024,
  /** How long a host and a command runner wait for a connection, its first frame and the delivery of the last one. */
  commandRequestWithinMs: 10_000,
  /** How long after its time-out, or after a cancel, a command may stay without an answer of its runner. */
  commandAnswerGraceMs: 30_000,
  /** Output is shown to watchers at most this often. */
  commandProgressIntervalMs: 200,
  commandProgressMaxChars: 4_096,
  urlMaxChars: 8_192,
  fetchTimeoutMs: 30_000,
  fetchRedirectsMax: 5,
} as const;
