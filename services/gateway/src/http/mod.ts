/** Requests around the routes: listening, pipelining, the Host and Origin checks, bodies, schemas and spans. */
export { expectListenable, GatewayOptionError, ListenPortInUseError, listenOn } from './listen-on.ts';
export { MethodTable } from './method-table.ts';
export { closeQueuedResponses } from './pipelined-requests.ts';
export { addBodyParsers, parseTextBody, TextBody } from './read-bodies.ts';
export {
  createGuard,
  type GuardOptions,
  isLoopback,
  isNavigation,
  loopbackOrigins,
  type RequestGuard,
  rejectRepeatedHeaders,
} from './request-guard.ts';
export {
  bodyOf,
  CancelledCall,
  FIRST_RECORD_SCHEMA,
  FirstRecord,
  IdempotencyHeader,
  membersOf,
  NoQuery,
  OfCall,
  OfPending,
  OfSession,
  OWN_ID,
  PROBLEMS,
  StoredCommand,
  Waiting,
  wholeNumber,
} from './route-schemas.ts';
export { strictValidation } from './strict-validation.ts';
export { createChildPlace, traceparentOf, traceRequests } from './trace-requests.ts';
export { NO_UPGRADE, rejectExpectation, respondToUnreadable } from './unreadable-requests.ts';
export { UnusedConnections } from './unused-connections.ts';
