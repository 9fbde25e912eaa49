/** What both ends of the bus share: connections, requests, errors, reads of streams, served work. */
export { type ConnectionListener, onConnectionChange } from './connection-changes.ts';
export type { ServedAddress } from './served/address.ts';
export { type Asking, createAsking, type NoteProblem } from './served/asking.ts';
export { fetchWhole, type OfferedData, offerData } from './served/fetch.ts';
export { type Instances, isWithoutInstances } from './served/instances.ts';
export { type CallEnding, type LedgerBounds, WorkLedger } from './served/ledger.ts';
export { type Ask, type AskEnd, type AskName, type AskTraits, LOST } from './served/open-ask.ts';
export type { AskProbe } from './served/probes.ts';
export { failed, type RunnableTool } from './served/run-tool.ts';
export {
  type AcceptedCall,
  type AnswerQuestion,
  type FindWork,
  RunningWork,
  type RunningWorkPorts,
  type SendReport,
} from './served/running-work.ts';
export { type ServingWork, serveWork, type WorkService } from './served/serve-work.ts';
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
