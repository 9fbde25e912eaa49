/** The errors of this package, and their conversion from answers of JetStream and from errors of the NATS library. */
import { CoxswainError } from '@coxswain/protocol';
import { JetStreamApiError, JetStreamError } from '@nats-io/jetstream';
import { errors, PermissionViolationError } from '@nats-io/nats-core';

/** The cause of an unavailable store, and whether a retry can help. */
export interface UnavailableOptions extends ErrorOptions {
  readonly isFinal?: boolean;
}

/**
 * A request has no usable answer: the server is unreachable or too slow, or the stream has no leader. The server may
 * have processed the request.
 */
export class NatsUnavailableError extends CoxswainError {
  /** No retry helps: the connection is closed, or JetStream is off. */
  readonly isFinal: boolean;

  constructor(message: string, { isFinal = false, ...options }: UnavailableOptions = {}) {
    super('nats_unreachable', message, options);
    this.isFinal = isFinal;
  }
}

/**
 * The server reports at once that no subscriber takes such requests, or that JetStream is off. On a JetStream subject,
 * the stream usually does not exist or has no leader.
 */
export class NoRespondersError extends NatsUnavailableError {}

/** The stream is full: it has its maximum of bytes, or of messages on the subject. */
export class StreamFullError extends NatsUnavailableError {}

/** The code of a refused request, and its cause. */
export interface RefusedOptions extends ErrorOptions {
  readonly code?: 'nats_request_refused' | 'not_permitted';
}

/** The server answered a request with an unexpected error. */
export class NatsRefusedError extends CoxswainError {
  /** The server's number of this error; 0 if the answer had none. */
  readonly errCode: number;

  constructor(what: string, error: ApiError, { code = 'nats_request_refused', ...options }: RefusedOptions = {}) {
    super(code, `${what}: ${error.description}${error.err_code === 0 ? '' : ` (${error.err_code})`}`, options);
    this.errCode = error.err_code;
  }
}

/** The stream does not exist. */
export class StreamNotFoundError extends NatsRefusedError {}

/** This user has no permission for the request or the subscription: the server has dropped it. */
export class NotPermittedError extends NatsRefusedError {
  constructor(subject: string, operation: 'publish' | 'subscription' = 'publish', options?: ErrorOptions) {
    const what = operation === 'publish' ? `asking on ${subject}` : `subscribing to ${subject}`;
    const description =
      'permissions violation: this NATS user has no permission for it; see the roles of cox admin auth';
    super(what, { code: 403, err_code: 0, description }, { ...options, code: 'not_permitted' });
  }
}

/** A stream is missing, and this NATS user has no permission to create it. */
export class StreamsMissingError extends CoxswainError {
  constructor(stream: string, options?: ErrorOptions) {
    super(
      'streams_missing',
      `${stream} is missing, and this user may not create streams; run cox admin streams with the key of an admin`,
      options,
    );
  }
}

/** The error member of a JetStream answer. */
export interface ApiError {
  readonly code: number;
  readonly err_code: number;
  readonly description: string;
}

/**
 * Converts an error of JetStream: code 503 (no leader, no resources, JetStream is off) means unavailable, any other
 * code a rejected request.
 */
export function failureOf(what: string, error: ApiError): NatsUnavailableError | NatsRefusedError {
  if (isStreamNotFound(error)) return new StreamNotFoundError(what, error);
  const text = `${what}: ${error.description} (${error.err_code})`;
  // Only the description distinguishes a reached limit from a failing disk.
  if (error.err_code === STORE_FAILED && error.description.includes('maximum')) return new StreamFullError(text);
  if (error.code !== UNAVAILABLE) return new NatsRefusedError(what, error);
  if (JETSTREAM_OFF.has(error.err_code)) return new NoRespondersError(text, { isFinal: true });
  return new NatsUnavailableError(text);
}

/** Error numbers of JetStream being off: for the server, and for the account. */
const JETSTREAM_OFF: ReadonlySet<number> = new Set([10_076, 10_039]);

/** The code of a request that no server can handle at the moment. */
const UNAVAILABLE = 503;

/** Error number of a failed write. */
const STORE_FAILED = 10_077;

/** The fencing token was wrong: the last sequence is not the expected one. */
export function isWrongSequence(error: ApiError): boolean {
  return error.err_code === 10_071;
}

/** A stream of this name exists with another configuration. */
export function isStreamNameInUse(error: ApiError): boolean {
  return error.err_code === 10_058;
}

/** The stream does not exist. */
export function isStreamNotFound(error: ApiError): boolean {
  return error.err_code === 10_059;
}

/** Error number: the consumer does not exist. */
export const CONSUMER_NOT_FOUND = 10_014;

/** Error number: the message does not exist. */
export const MESSAGE_NOT_FOUND = 10_037;

const NO_CONNECTION = [errors.TimeoutError, errors.DrainingConnectionError, errors.ConnectionError];

/** The error of this package for an error of the NATS library; its own errors as they are; null for any other error. */
export function busErrorOf(error: unknown): NatsUnavailableError | NatsRefusedError | null {
  if (error instanceof NatsUnavailableError || error instanceof NatsRefusedError) return error;
  const violation = violationIn(error);
  if (violation instanceof NotPermittedError) return violation;
  if (violation) return new NotPermittedError(violation.subject, violation.operation, { cause: error });
  if (error instanceof JetStreamApiError) {
    const { status: code, code: err_code, message: description } = error;
    return failureOf('JetStream', { code, err_code, description });
  }
  const text = `NATS cannot respond: ${error instanceof Error ? error.message : String(error)}`;
  if (isClosed(error)) return new NatsUnavailableError(text, { cause: error, isFinal: true });
  if (hasNoResponders(error)) return new NoRespondersError(text, { cause: error });
  if (NO_CONNECTION.some((kind) => error instanceof kind)) return new NatsUnavailableError(text, { cause: error });
  if (!(error instanceof JetStreamError)) return null;
  return new NatsRefusedError('JetStream', { code: 500, err_code: 0, description: error.message }, { cause: error });
}

/** Whether the server reported a missing permission, for the error or one of its causes. */
export function isNotPermitted(error: unknown): boolean {
  return violationIn(error) !== null;
}

function violationIn(error: unknown): NotPermittedError | PermissionViolationError | null {
  if (error instanceof NotPermittedError || error instanceof PermissionViolationError) return error;
  const cause = (error as { cause?: unknown } | null)?.cause;
  return cause === undefined || cause === error ? null : violationIn(cause);
}

/** Whether the connection is closed permanently. */
function isClosed(error: unknown): boolean {
  return (
    error instanceof errors.ClosedConnectionError ||
    // For a pending request, the library reports this by the message only.
    (error instanceof errors.RequestError && error.message === 'connection closed') ||
    (error as Error | null)?.cause instanceof errors.ClosedConnectionError
  );
}

function hasNoResponders(error: unknown): boolean {
  if (error instanceof errors.RequestError) return error.isNoResponders();
  // The library does not export the class of this error.
  return error instanceof errors.NoRespondersError || (error as Error | null)?.name === 'JetStreamNotEnabled';
}
