/** What both ends of the bus share: connections, requests, errors, reads of streams. */
export { type ConnectionListener, onConnectionChange } from './connection-changes.ts';
export {
  type ApiError,
  answerOf,
  failureOf,
  isConsumerNotFound,
  isMessageNotFound,
  isStreamNameInUse,
  isStreamNotFound,
  isWrongSequence,
  NatsRefusedError,
  NatsUnavailableError,
  NoRespondersError,
  NotPermittedError,
  type PublishAck,
  STATUS,
  statusOf,
  statusText,
} from './status.ts';
export { createStreamReader, directMessage, type StoredMessage, type StreamReader } from './stream-reader.ts';
export { createWire, inboxPrefixOf, isTenantsKey, tracedBy, type Wire, wireOf } from './wire.ts';
