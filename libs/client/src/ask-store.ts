/** Requests to JetStream, with retries while a stream has no leader. */
import { JetStreamApiCodes, JetStreamApiError, JetStreamError, jetstreamManager } from '@nats-io/jetstream';
import { errors, type NatsConnection } from '@nats-io/nats-core';
import { CoxswainError } from './client-errors.ts';

/** Longer than a leader election, which takes six seconds after a server was killed. */
const ANSWERED_WITHIN_MS = 10_000;
const SILENT_FOR_MS = 40_000;
/** After this time without a message, the consumer is asked whether more messages are due. */
const LOOKED_EVERY_MS = 1_000;
const PAUSE_MS = 250;
/** The status of a request that no server can handle at the moment. */
const UNAVAILABLE = 503;
/** JetStream is disabled: on the server, and for the account. */
const OFF: ReadonlySet<number> = new Set([10_076, 10_039]);

/** NATS or JetStream does not respond: no leader, no quorum, or no connection. A retry may succeed. */
export class StoreUnavailableError extends CoxswainError {
  constructor(cause: unknown) {
    super('nats_unreachable', whyUnanswered(cause), { cause });
  }
}

/** NATS answered with an unexpected error. */
export class StoreRefusedError extends CoxswainError {
  /** @internal */
  constructor(cause: JetStreamError | JetStreamApiError) {
    super('nats_request_refused', `the NATS server rejected the request: ${cause.message}`, { cause });
  }
}

/**
 * Reads from JetStream, with retries for ten seconds while it does not respond.
 * @param ask Reads; may be called several times.
 * @throws StoreUnavailableError after ten seconds without a response, at once if JetStream is disabled or the
 *   connection is closed; other errors of `ask`.
 */
export async function askStore<T>(ask: () => Promise<T>): Promise<T> {
  const giveUpAtMs = performance.now() + ANSWERED_WITHIN_MS;
  for (;;) {
    const leftMs = giveUpAtMs - performance.now();
    try {
      return await within(leftMs, ask());
    } catch (error) {
      if (!isUnanswered(error)) throw error;
      const isOff = error instanceof JetStreamApiError && OFF.has(error.code);
      if (isOff || isClosed(error) || performance.now() + PAUSE_MS >= giveUpAtMs)
        throw new StoreUnavailableError(error);
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/**
 * Yields the items of a reader, and fails if the next one takes longer than forty seconds. Readers renew a lost
 * consumer within a few seconds, so a longer silence means that JetStream is unreachable.
 * @param checkIfDue Called after every second of silence. It ends the items if no more are due.
 * @throws StoreUnavailableError; other errors of the items.
 */
export async function* failWhenSilent<T>(
  items: AsyncGenerator<T, void, undefined>,
  checkIfDue: () => void,
): AsyncGenerator<T, void, undefined> {
  let waits = false;
  const looking = setInterval(() => waits && checkIfDue(), LOOKED_EVERY_MS);
  try {
    for (;;) {
      waits = true;
      looking.refresh();
      const { done, value } = await within(SILENT_FOR_MS, items.next()).catch((error: unknown) => {
        throw isUnanswered(error) ? new StoreUnavailableError(error) : error;
      });
      waits = false;
      if (done) return;
      yield value;
    }
  } finally {
    clearInterval(looking);
    const ended = items.return();
    // A source that waits for a lost response ends with the connection.
    if (waits) ended.catch(() => undefined);
    else await ended;
  }
}

/** Whether there was no response, or the response says that the store is temporarily unavailable. */
export function isUnanswered(error: unknown): boolean {
  if (error instanceof JetStreamApiError) return error.status === UNAVAILABLE;
  return hasNoResponders(error) || isClosed(error) || NO_CONNECTION.some((kind) => error instanceof kind);
}

/** Whether the connection is closed permanently: a retry cannot succeed. */
function isClosed(error: unknown): boolean {
  return (
    error instanceof errors.ClosedConnectionError ||
    // For a pending request, the library reports this by the message only.
    (error instanceof errors.RequestError && error.message === 'connection closed') ||
    (error as Error | null)?.cause instanceof errors.ClosedConnectionError
  );
}

/** Whether there are no responders: the stream does not exist or has no leader, or JetStream is disabled. */
export function hasNoResponders(error: unknown): boolean {
  if (error instanceof errors.RequestError) return error.isNoResponders();
  // The library does not export the class of this error.
  return error instanceof errors.NoRespondersError || (error as Error | null)?.name === 'JetStreamNotEnabled';
}

const NO_CONNECTION = [errors.TimeoutError, errors.DrainingConnectionError, errors.ConnectionError];

/** Converts an error of the NATS client library to a CoxswainError; null for any other error. */
export function toClientError(error: unknown): CoxswainError | null {
  if (error instanceof StoreUnavailableError || error instanceof StoreRefusedError) return error;
  if (isNotPermitted(error)) return new CoxswainError('not_permitted', (error as Error).message, { cause: error });
  if (isUnanswered(error)) return new StoreUnavailableError(error);
  if (error instanceof JetStreamApiError || error instanceof JetStreamError) return new StoreRefusedError(error);
  return null;
}

function whyUnanswered(cause: unknown): string {
  if (hasNoResponders(cause))
    return 'JetStream does not respond (no responders): a stream has no leader, or JetStream is disabled';
  if (cause instanceof errors.TimeoutError)
    return 'NATS does not respond in time: it elects a leader, or has lost its quorum';
  const said = cause instanceof Error ? cause.message : String(cause);
  return `NATS cannot respond: ${said}`;
}

async function within<T>(ms: number, answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new errors.TimeoutError()), Math.max(0, ms));
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
    // A late failure must not become an unhandled rejection.
    answer.catch(() => undefined);
  }
}

/** Whether the server reports a missing permission. */
export function isNotPermitted(error: unknown): boolean {
  if (error instanceof errors.PermissionViolationError) return true;
  const cause = (error as { cause?: unknown } | null)?.cause;
  return cause !== undefined && cause !== error && isNotPermitted(cause);
}

const MISSING_TIMEOUT_MS = 2_000;

/** Whether NATS reports that the stream does not exist. Without a response it is false. @internal */
export async function streamIsMissing({ nc }: { readonly nc: NatsConnection }, stream: string): Promise<boolean> {
  try {
    const manager = await jetstreamManager(nc, { checkAPI: false, timeout: MISSING_TIMEOUT_MS });
    await manager.streams.info(stream);
    return false;
  } catch (error) {
    return isStreamNotFound(error);
  }
}

/** Whether a stream rejects a message because it reached its limit of bytes, or of messages per subject. @internal */
export function isStreamFull(error: unknown): error is JetStreamApiError {
  return error instanceof JetStreamApiError && error.code === STORE_FAILED && error.message.includes('maximum');
}

/** The server's code for a failed write. Only the message distinguishes a reached limit from a failing disk. */
const STORE_FAILED = 10_077;

/** Whether the server reports that the stream does not exist. @internal */
export function isStreamNotFound(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound;
}
