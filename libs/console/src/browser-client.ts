/** What the page has of the client library: sessions over HTTP, and what is put together from their records. */
import type { HttpClient, HttpSession } from '@coxswain/client/http';

export {
  connect,
  createEventTranslator,
  describeState,
  hasEnded,
  type ListedSession,
  newCommandId,
  newSessionId,
  printable,
  printableJson,
  type SessionTree,
  type TreeNode,
  topState,
  type UiEvent,
  UsageCollector,
  type UsageReport,
} from '@coxswain/client/http';

/** The sessions of whoever is signed in. */
export type SessionsClient = HttpClient;
/** One of them. */
export type SessionHandle = HttpSession;
