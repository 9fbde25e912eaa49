/** What both ends of the bus share: connections, requests, errors, stored commands, reads of streams, back-off. */
export { awaitPermanentClose, type ConnectNatsOptions, connectNats, withConnection } from './connect.ts';
export { type BusLog, logConnection, onConnectionChange } from './connection-changes.ts';
export { askJetStream, nullIfNoStream, streamInfo } from './jetstream-api.ts';
export { busErrorOf, isNotPermitted } from './library-errors.ts';
export {
  dropConsumer,
  liveMessages,
  type OrderedSource,
  orderedConsumer,
  storedMessages,
} from './ordered-follow.ts';
export { type Retries, retryRequest, retryWhileUnavailable } from './retry-while-unavailable.ts';
export {
  type ApiError,
  answerOf,
  CONSUMER_NOT_FOUND,
  failureOf,
  isStreamNameInUse,
  isStreamNotFound,
  isWrongSequence,
  NatsRefusedError,
  NatsUnavailableError,
  NoRespondersError,
  NotPermittedError,
  type PublishAck,
  STATUS,
  StreamFullError,
  StreamNotFoundError,
  statusOf,
} from './status.ts';
export { type CommandHeaders, type StoredPosition, storeCommand, storeMessage } from './store-message.ts';
export { createStreamReader, directMessage, type StoredMessage, type StreamReader } from './stream-reader.ts';
export { inboxPrefixOf, isTenantsKey, tracedBy, type Wire, wireOf } from './wire.ts';
