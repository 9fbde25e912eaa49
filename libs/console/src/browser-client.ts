/** What the page has of the client library: sessions over HTTP, and what is put together from their records. */
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

/** The sessions of whoever is signed in. */
export type SessionsClient = HttpClient;
/** One of them. */
export type SessionHandle = HttpSession;
