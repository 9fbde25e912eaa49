/** What both ends of the bus share: connections, requests, errors, stored commands, reads of streams, back-off. */
export { awaitPermanentClose, type ConnectNatsOptions, connectNats, withConnection } from './connect.ts';
export { type BusLog, type ConnectionListener, logConnection, onConnectionChange } from './connection-changes.ts';
export { busErrorOf, isNotPermitted } from './library-errors.ts';
export {
  type Buffering,
  dropConsumer,
  liveMessages,
  type OrderedSource,
  orderedConsumer,
  storedMessages,
} from './ordered-follow.ts';
export { type Retries, retryRequest, retryWhileUnavailable, STORE_RETRIES } from './retry-while-unavailable.ts';
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
  StreamFullError,
  StreamNotFoundError,
  statusOf,
  statusText,
} from './status.ts';
export { type CommandHeaders, type StoredPosition, storeCommand, storeMessage } from './store-message.ts';
export { streamInfo } from './stream-info.ts';
export { createStreamReader, directMessage, type StoredMessage, type StreamReader } from './stream-reader.ts';
export { createWire, inboxPrefixOf, isTenantsKey, tracedBy, type Wire, wireOf } from './wire.ts';
