/** Messages between a service of several session hosts and each host, over the IPC channel of the host's process. */
import type { SessionsServiceOptions } from '../start-sessions-service.ts';

/** How a host is started. All members can be cloned. */
export interface HostSettings
  extends Pick<
    SessionsServiceOptions,
    'nats' | 'stateDir' | 'manifest' | 'manifestDigest' | 'policyFile' | 'ownPaths'
  > {
  readonly hostName: string;
  /** Log target of the host: its own file in the state folder, or the standard error stream of the service. */
  readonly log: 'file' | 'stderr';
  /** Whether the service collects metrics. */
  readonly hasMetrics: boolean;
}

/** From the service to a host. `start` comes first, once. */
export type ToHost =
  | { readonly type: 'start'; readonly settings: HostSettings }
  | { readonly type: 'ask'; readonly id: number; readonly what: 'health' | 'metrics' }
  | { readonly type: 'stop' };

/** From a host to its service. */
export type FromHost =
  | { readonly type: 'ready'; readonly hostId: string }
  /** The host did not start, or cannot continue on this bus. */
  | { readonly type: 'failed'; readonly error: SentError }
  | { readonly type: 'answer'; readonly id: number; readonly value: string | null }
  | { readonly type: 'refusal'; readonly id: number; readonly message: string };

/** An error in a message. A clone of an Error keeps neither its name nor its code. */
export interface SentError {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  readonly code: unknown;
  readonly field: unknown;
  readonly detail: unknown;
  readonly cause: SentError | undefined;
}

/** Deeper causes are not sent. */
const CAUSES_MAX = 8;

/** Converts an error and its causes to a message. */
export function toSentError(error: unknown, depth = 0): SentError {
  const known = error instanceof Error ? error : new Error(String(error));
  const { code, field, detail } = known as { code?: unknown; field?: unknown; detail?: unknown };
  const cause = known.cause instanceof Error && depth < CAUSES_MAX ? toSentError(known.cause, depth + 1) : undefined;
  const { name, message, stack } = known;
  return { name, message, stack, code: plain(code), field: plain(field), detail: plain(detail), cause };
}

/** Restores an error with the name, code and causes by which callers recognize it. */
export function ofSentError({ message, cause, ...sent }: SentError): Error {
  const error = new Error(message, cause === undefined ? {} : { cause: ofSentError(cause) });
  for (const [key, value] of Object.entries(sent))
    if (value !== undefined) Object.defineProperty(error, key, { value, configurable: true, writable: true });
  return error;
}

/** A copy of a value through JSON; undefined if JSON cannot express it. */
function plain(value: unknown): unknown {
  try {
    const text = JSON.stringify(value);
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
