/** What all routes share: the context, its limits and metrics, and problem documents. */
export { ConnectionShares } from './connection-shares.ts';
export { GATEWAY_BOUNDS } from './gateway-bounds.ts';
export {
  clientFor,
  countRequest,
  expectBus,
  type GatewayClient,
  type GatewayContext,
  type GatewayTimes,
  principalOf,
  rateLimitedProblem,
  type StartOffers,
  takeRequest,
} from './gateway-context.ts';
export { createMetrics, type GatewayMetrics } from './gateway-metrics.ts';
export { KnownSessions, sessionNotFoundProblem } from './known-sessions.ts';
export { LimitedReads } from './limited-reads.ts';
export { type MemoryShare, MemoryShares } from './memory-shares.ts';
export {
  abortOnDisconnect,
  busyProblem,
  Problem,
  ProblemDocument,
  problemFrom,
  requestClosedProblem,
  sendProblem,
  withRenamedField,
} from './problem.ts';
export { ReadShares } from './read-shares.ts';
export { UnreadResponses } from './unread-responses.ts';
export { onStopping } from './when-stopping.ts';
