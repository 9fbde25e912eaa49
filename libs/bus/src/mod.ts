/** What both ends of the bus share: connections, requests, errors, stored commands, reads of streams, back-off, served work. */
export { awaitPermanentClose, connectNats, withConnection } from './connect.ts';
export type { ConnectNatsOptions } from './connect-options.ts';
export { type BusLog, logConnection, onConnectionChange } from './connection-changes.ts';
export {
  type ApiError,
  busErrorOf,
  CONSUMER_NOT_FOUND,
  failureOf,
  isNotPermitted,
  isStreamNameInUse,
  isStreamNotFound,
  isWrongSequence,
  NatsRefusedError,
  NatsUnavailableError,
  NoRespondersError,
  NotPermittedError,
  StreamFullError,
  StreamNotFoundError,
  StreamsMissingError,
} from './errors.ts';
export { askJetStream, nullIfNoStream, streamInfo } from './jetstream-api.ts';
export {
  dropConsumer,
  liveMessages,
  type OrderedSource,
  orderedConsumer,
  storedMessages,
} from './ordered-follow.ts';
export { isRemovedKey, replaceKey } from './registry.ts';
export { type Retries, retryRequest, retryWhileUnavailable } from './retry-while-unavailable.ts';
export type { ServedAddress } from './served/address.ts';
export {
  type Announcement,
  announce,
  readAnnouncement,
  removeAnnouncement,
  removeKey,
  type StoredAnnouncement,
  type When,
} from './served/announcements.ts';
export { type Asking, type AskingConnection, createAsking } from './served/asking.ts';
export type { WorkClock } from './served/clock.ts';
export { fetchWhole, type OfferedData, offerData } from './served/fetch.ts';
export type { Instances } from './served/instances.ts';
export { WorkLedger } from './served/ledger.ts';
export type { Ask, AskEnd, AskName, AskTraits, NoteProblem } from './served/open-ask.ts';
export type { AskProbe } from './served/probes.ts';
export { type Rate, RateLimit } from './served/rate-limit.ts';
export { createWorkReceiver, type ReceivedWork, type WorkReceiver } from './served/receive-work.ts';
export {
  type AcceptedCall,
  type AnswerQuestion,
  type FindWork,
  RunningWork,
} from './served/running-work.ts';
export { confirmed, type ServingWork, serveWork, type WorkService } from './served/serve-work.ts';
export { answerOf, type PublishAck, STATUS, statusOf } from './status.ts';
export { type CommandHeaders, type StoredPosition, storeCommand, storeMessage } from './store-message.ts';
export { createStreamReader, directMessage, type StoredMessage, type StreamReader } from './stream-reader.ts';
export { type ValueSchema, valueIn } from './value-in.ts';
export { inboxPrefixOf, isTenantsKey, tracedBy, type Wire, wireOf } from './wire.ts';
