/** Every bound of the gateway. What happens at one is a problem document with a code, or the end of the connection. */
export const GATEWAY_BOUNDS = {
  /** Connections of one process; the server refuses those beyond. */
  connectionsMax: 8_192,
  /** One body, as a command on the bus. */
  bodyMaxBytes: 256 * 1024,
  /** One request of AG-UI, whose clients send the whole conversation each time. */
  aguiBodyMaxBytes: 4 * 1024 * 1024,
  /** All headers of one request. */
  headersMaxBytes: 16 * 1024,
  /** How long a client may take to send its headers, and its whole request. */
  headersTimeoutMs: 20_000,
  requestTimeoutMs: 60_000,
  keepAliveMs: 10_000,
  /** How long a connection may stand still with an answer on it that nobody takes: longer than any answer is waited for. */
  standstillMs: 90_000,
  /** The longest that `?wait=` may last. */
  waitMaxMs: 60_000,
  waitDefaultMs: 30_000,
  /** How long a start without `?wait=` waits to be accepted. Shorter than `stopWithinMs`, so that a stop does not cut it off. */
  startAcceptedWithinMs: 5_000,
  /** Records of one page. */
  pageRecordsMax: 1_000,
  pageRecordsDefault: 100,
  /** Approvals of one page. */
  pageApprovalsMax: 500,
  pageApprovalsDefault: 200,
  /** What the records of one page have together; the page ends after the one that passes it. */
  pageMaxBytes: 8 * 1024 * 1024,
  /** Connections that follow sessions (SSE and WebSocket): of one session, of one token, of one process. */
  watchersPerSessionMax: 1_024,
  watchersPerPrincipalMax: 2_048,
  watchersMax: 4_096,
  /** Connections that inspect sessions, of one process and of one token: each has a machine of its own. */
  inspectorsMax: 256,
  inspectorsPerPrincipalMax: 64,
  /** Sessions whose folded machine is kept for the next who inspects them. */
  keptFoldsMax: 64,
  /** What one process keeps of a session that is followed, for those who are a little behind: records and deltas. */
  feedItemsMax: 1_000,
  feedMaxBytes: 4 * 1024 * 1024,
  /** How long a session is followed after the last watcher has left: whoever lost the connection comes back to it. */
  feedLingersMs: 10_000,
  /** A watcher that has taken nothing for so long while something waits for it is cut off. */
  watcherStallMs: 30_000,
  /** What waits unread for one WebSocket; beyond it the connection is ended. */
  socketWaitingMaxBytes: 4 * 1024 * 1024,
  /** How often the token of a watcher is checked again, and a WebSocket pinged. */
  recheckMs: 15_000,
  /** Commands of one WebSocket that wait for their receipts. */
  socketCommandsMax: 32,
  /** Requests of one token: so many at once, and so many a second on end. */
  requestsBurst: 400,
  requestsPerSecond: 200,
  /** Wrong tokens of one address. */
  refusedBurst: 20,
  refusedPerSecond: 1,
  /** Tokens and addresses whose rates are remembered. */
  ratesRemembered: 10_000,
  /** Trees, exports and lists that are read at once. */
  expensiveReadsMax: 16,
  /** How many more wait for their turn. */
  readsWaitingMax: 128,
  /** Pages of journals that are read at once, for readers and for watchers who are behind; the others wait, as many as watch. */
  pageReadsMax: 16,
  /** What a watcher who is behind is given at once; it is read before it is written, so that who is slow holds nothing else. */
  catchUpRecordsMax: 256,
  catchUpMaxBytes: 128 * 1024,
  /** Records on their way from the store to one page. */
  pageReadAhead: 16,
  /** Ends of pages that are remembered, so that the next page begins there. */
  placesMax: 10_000,
  /** Sessions that are known to be there, and for how long. */
  knownSessionsMax: 10_000,
  knownSessionMs: 60_000,
  /** Tokens of one file. */
  tokensMax: 10_000,
  tokensFileMaxBytes: 4 * 1024 * 1024,
  /** How often the file of tokens is looked at for changes. */
  tokensReadEveryMs: 1_000,
  /** How long requests that wait for a receipt at a stop go on waiting. */
  waitsEndMs: 2_000,
  /** How long requests that are under way at a stop may take. */
  stopWithinMs: 10_000,
} as const;
