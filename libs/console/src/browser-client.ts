/** The part of the client library that the page uses: sessions over HTTP, and collectors for their records. */
import type { HttpClient, HttpSession } from '@coxswain/client/http';

export {
  type BodyInput,
  connect,
  createEventTranslator,
  describeState,
  type ForkOptions,
  hasEnded,
  newCommandId,
  newSessionId,
  type OfferedStarts,
  printable,
  printableJson,
  type TokenUsage,
  topState,
  type UiEvent,
  UsageCollector,
  type UsageReport,
  type WireListedSession,
  type WireSessionTree,
  type WireTreeNode,
} from '@coxswain/client/http';

/** The sessions of the signed-in user. */
export type SessionsClient = HttpClient;
/** A session of the signed-in user. */
export type SessionHandle = HttpSession;
