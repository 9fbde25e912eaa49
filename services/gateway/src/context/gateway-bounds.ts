/**
 * Limits of the gateway. Beyond most of them, a request gets a problem document or the connection is closed. Beyond
 * limits of caches, the oldest entry is removed.
 *
 * Memory of journals at most, for a container of 256 MB, of which the process itself takes about 90 MiB. The sum is
 * 164 MiB. A record counts 512 KiB.
 *
 * | MiB | what |
 * |---|---|
 * | 32 | feeds: `feedsMaxBytes` |
 * | 19 | pages of watchers: `catchUpsMaxBytes`, and those of the last `pageReadsMax` reads |
 * | 20 | responses: `unreadMaxBytes`, and the last one |
 * | 13 | pages that are being read: `pageMaxBytes` and `catchUpMaxBytes`, `pageReadsMax` times each, with a last record |
 * | 32 | their prefetched records: `pageReadAhead`, twice `pageReadsMax` times |
 * | 48 | states and newest records: `stateReadsMax` |
 *
 * Not in the sum, because they are rarely large: bodies of requests (`bodiesMaxBytes`), incomplete messages and unread
 * answers of WebSockets (`socketMessagesMaxBytes`, and `socketMessageFromBytes` for each), large fields of records, reads
 * of whole journals (`journalReadAhead` for each of `expensiveReadsMax`, as many for each of `exportsMax`, and 16 times as
 * many for a tree), and the state that an AG-UI run shows.
 */
export const GATEWAY_BOUNDS = {
  /** Connections of one process. The server closes further connections. */
  connectionsMax: 8_192,
  /** Body of a request, the same as of a command on the bus. */
  bodyMaxBytes: 256 * 1024,
  /** Body of an AG-UI request. AG-UI clients send the whole conversation each time. */
  aguiBodyMaxBytes: 4 * 1024 * 1024,
  /**
   * Bodies of requests, from before they are read until they are handled, and commands over WebSockets: all together,
   * half of it for each tenant, and a quarter for each principal. Beyond it, a request is rejected before its body is
   * read. Each counts `requestBytes` more: also requests without a body are bounded while they wait for a receipt.
   */
  bodiesMaxBytes: 32 * 1024 * 1024,
  requestBytes: 4 * 1024,
  /** Newest messages of users in an AG-UI request whose ids are kept while the run streams. */
  aguiKnownMessagesMax: 1_000,
  /** Newest messages of a session in the snapshot for an AG-UI client: number, and characters of their JSON. */
  aguiSnapshotMessagesMax: 1_000,
  aguiSnapshotMaxChars: 4 * 1024 * 1024,
  /** All headers of a request. */
  headersMaxBytes: 16 * 1024,
  /** Time to receive the headers, and to receive the whole request. */
  headersTimeoutMs: 20_000,
  requestTimeoutMs: 60_000,
  keepAliveMs: 10_000,
  /** Inactivity timeout of a connection. Longer than `waitMaxMs`, so that it does not end a waiting request. */
  standstillMs: 90_000,
  /**
   * Responses that their clients have not read, all together, half of it for each tenant, and a quarter for each
   * principal. Beyond it, a response becomes a problem. A response is counted above `unreadFromBytes`: a smaller one fits
   * in the send buffer of its connection.
   */
  unreadMaxBytes: 16 * 1024 * 1024,
  unreadFromBytes: 16 * 1024,
  /** Time within which a client reads such a response. Afterwards its connection is closed. */
  readWithinMs: 60_000,
  /** Maximum and default of `timeout_ms` with `?wait=`. */
  waitMaxMs: 60_000,
  waitDefaultMs: 30_000,
  /**
   * Time for which a start without `?wait=` waits for acceptance. Shorter than `stopWithinMs`, so that a stop does not
   * cut it off.
   */
  startAcceptedWithinMs: 5_000,
  /** Records per page. */
  pageRecordsMax: 1_000,
  pageRecordsDefault: 100,
  /** Approvals per page. */
  pageApprovalsMax: 500,
  pageApprovalsDefault: 200,
  /** Size of the approvals of a page, as JSON. The page ends after the approval that reaches it. */
  pageApprovalsMaxBytes: 4 * 1024 * 1024,
  /** Size of the records of a page. The page ends after the record that reaches it. */
  pageMaxBytes: 2 * 1024 * 1024,
  /** Connections that follow sessions (SSE and WebSocket): per session, per principal, and per process; a tenant has half. */
  watchersPerSessionMax: 1_024,
  watchersPerPrincipalMax: 2_048,
  watchersMax: 4_096,
  /** Connections that inspect sessions, per process and per principal; a tenant has half. Each has its own machine, up to 3 MiB. */
  inspectorsMax: 64,
  inspectorsPerPrincipalMax: 16,
  /** Sessions whose folded machine is kept for the next inspector, and the size of each as JSON. */
  keptFoldsMax: 64,
  keptFoldMaxChars: 256 * 1024,
  /**
   * Items (records and deltas) that a process keeps of each followed session, for watchers that are slightly behind.
   */
  feedItemsMax: 1_000,
  /** Items and running answer of each followed session, and of all of them together. */
  feedMaxBytes: 4 * 1024 * 1024,
  feedsMaxBytes: 32 * 1024 * 1024,
  /** Memory of a kept item in addition to its texts: the objects that hold them. */
  feedItemBytes: 1_024,
  /** Time for which a session is followed after its last watcher has left, so that a client can reconnect. */
  feedLingersMs: 10_000,
  /** A watcher that reads nothing for this time while data is buffered is disconnected. */
  watcherStallMs: 30_000,
  /**
   * What WebSockets have received of messages that are not complete, and answers to commands that their clients have not
   * read, all together, half of it for each tenant, and a quarter for each principal. Beyond it, the connection is
   * closed. A received message is counted from `socketMessageFromBytes` on. Each received chunk and each answer counts
   * `socketChunkBytes` more, the memory of the objects that hold it.
   */
  socketMessagesMaxBytes: 16 * 1024 * 1024,
  socketMessageFromBytes: 4 * 1024,
  socketChunkBytes: 512,
  /** Fragments of a message, and chunks of a fragment that is not complete. Clients need few. */
  socketFragmentsMax: 128,
  socketChunksMax: 2_048,
  /** Interval of checking a watcher's token and of WebSocket pings. */
  recheckMs: 15_000,
  /** Commands of one WebSocket that wait for their receipts. */
  socketCommandsMax: 32,
  /** Rate limit of requests per principal: burst, and sustained rate. */
  requestsBurst: 400,
  requestsPerSecond: 200,
  /** Rate limit of failed authentications per IP address. */
  refusedBurst: 20,
  refusedPerSecond: 1,
  /** Principals, and IP addresses, whose rates are remembered. */
  ratesRemembered: 10_000,
  /** Concurrent reads of trees, lists and whole journals. As of all reads for requests, a tenant has half of them. */
  expensiveReadsMax: 16,
  /** Maximum number of records, each up to 512 KiB, that are prefetched of a whole journal. A tree reads 16 at once. */
  journalReadAhead: 16,
  /** Concurrent exports, of all principals and of each, and the maximum duration of each. A tenant has half of all. */
  exportsMax: 8,
  exportsPerPrincipalMax: 2,
  exportMaxMs: 60 * 60_000,
  /**
   * Concurrent reads of states and newest records, each up to 3 MiB. A host that does not respond occupies a slot for
   * five seconds. So does one with too many queries: a read keeps its slot while it asks again, so that waiting reads
   * add no queries.
   */
  stateReadsMax: 16,
  /** Concurrent reads of journal pages for requests, and as many for watchers. */
  pageReadsMax: 4,
  /**
   * Further reads of each principal that wait for a slot, also exports, and the time for which each waits. It is shorter
   * than the 20 seconds for which clients wait for a response. Of watchers, all may wait, each for `catchUpWithinMs`.
   */
  readsWaitingMax: 128,
  readWaitsMs: 10_000,
  /**
   * Size of a page for a watcher that is behind. It is read before it is written, so that a slow watcher does not
   * occupy a read slot.
   */
  catchUpRecordsMax: 256,
  catchUpMaxBytes: 128 * 1024,
  /**
   * Pages that watchers have not written yet, all together, and a quarter of it for each principal. Beyond it, further
   * watchers wait.
   */
  catchUpsMaxBytes: 16 * 1024 * 1024,
  /** Time after which a watcher gives up the rest of a page. For the next one, it waits at most this time again. */
  catchUpWithinMs: 30_000,
  /**
   * Maximum number of records, each up to 512 KiB, that are prefetched for a page. With fewer, a page takes more round
   * trips to NATS; with more, `pageReadsMax` would have to be lower, and a server that does not respond could occupy all
   * slots.
   */
  pageReadAhead: 8,
  /** Remembered ends of pages, at which the next page starts. */
  placesMax: 10_000,
  /** Time for which a replica of a journal may lag: a record that a client has already received exists until then. */
  replicaLagMs: 5_000,
  /** Sessions that are known to exist, and the time for which that holds. */
  knownSessionsMax: 10_000,
  knownSessionMs: 60_000,
  /** Tokens in a file, and its size. */
  tokensMax: 10_000,
  tokensFileMaxBytes: 4 * 1024 * 1024,
  /** Minimum interval between checks of the token file for changes. */
  tokensReadEveryMs: 1_000,
  /** Time after which requests that wait for a receipt end during a stop. */
  waitsEndMs: 2_000,
  /** Time for in-flight requests during a stop. */
  stopWithinMs: 10_000,
} as const;
