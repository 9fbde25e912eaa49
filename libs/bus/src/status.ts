/** Errors of NATS requests, and the meaning of the server's status and error codes. */
import { CoxswainError } from '@coxswain/protocol';
import type { Msg } from '@nats-io/nats-core';

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
  if (error.code !== STATUS.noResponders) return new NatsRefusedError(what, error);
  if (JETSTREAM_OFF.has(error.err_code)) return new NoRespondersError(text, { isFinal: true });
  return new NatsUnavailableError(text);
}

/** Error numbers of JetStream being off: for the server, and for the account. */
const JETSTREAM_OFF: ReadonlySet<number> = new Set([10_076, 10_039]);

/** Error number of a failed write. */
const STORE_FAILED = 10_077;

/** The acknowledgement of a publish: `seq` if the message is stored, otherwise `error`. */
export interface PublishAck {
  readonly stream?: string;
  readonly seq?: number;
  readonly duplicate?: boolean;
  readonly error?: ApiError;
}

/** Reads a JetStream answer's body. An answer that is not JSON reads as an error. */
export function answerOf<T extends object>(message: Msg): T & { readonly error?: ApiError } {
  try {
    return JSON.parse(message.string()) as T & { readonly error?: ApiError };
  } catch (cause) {
    const error: ApiError = { code: 500, err_code: 0, description: `not JSON: ${(cause as Error).message}` };
    return { error } as T & { readonly error: ApiError };
  }
}

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

/** The code of a status message; 0 for data. The data of direct gets has headers, but no code. */
export function statusOf(message: Msg): number {
  return message.data.length === 0 ? (message.headers?.code ?? 0) : 0;
}

/** Codes of status messages. */
export const STATUS = {
  /** The end of a batched direct get. */
  endOfBatch: 204,
  /** A direct get found nothing. */
  notFound: 404,
  /** A pull request has expired. */
  requestExpired: 408,
  /** A pull request ended early: the consumer was deleted, its leader changed, a bound was reached. */
  requestEnded: 409,
  /** A pull request named a pin that is no longer held. */
  wrongPin: 423,
  /** No responders: the stream or consumer does not exist, or has no leader. */
  noResponders: 503,
} as const;

/** The description of a status code; empty without one. */
export function statusText(message: Msg): string {
  return message.headers?.description ?? '';
}
