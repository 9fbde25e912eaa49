/** What the server's answers mean. Status and error codes of the wire are read here and nowhere else. */
import type { Msg } from '@nats-io/nats-core';

/** No answer came: the server cannot be reached, has no leader for the stream, or is too slow. It may have acted. */
export class NatsUnavailableError extends Error {
  override readonly name = 'NatsUnavailableError';
  readonly code = 'nats_unreachable';
}

/** The bus says at once that nobody takes such requests: JetStream is off, or there is no such stream. Waiting seldom helps. */
export class NobodyListensError extends NatsUnavailableError {}

/** The server answered a request of ours with an error that nobody here expects. */
export class NatsRefusedError extends Error {
  override readonly name = 'NatsRefusedError';
  readonly code: 'nats_request_refused' | 'not_permitted' = 'nats_request_refused';
  /** The server's own number of this error; 0 where the answer had none. */
  readonly errCode: number;
  constructor(what: string, error: ApiError) {
    super(`${what}: ${error.description}${error.err_code === 0 ? '' : ` (${error.err_code})`}`);
    this.errCode = error.err_code;
  }
}

/** This user may not do that: the server has let the request fall. */
export class NotPermittedError extends NatsRefusedError {
  override readonly code = 'not_permitted';
  constructor(subject: string) {
    const description = 'permissions violation: this NATS user may not publish there; see the roles of cox admin auth';
    super(`asking on ${subject}`, { code: 403, err_code: 0, description });
  }
}

/** The error member of a JetStream answer. */
export interface ApiError {
  readonly code: number;
  readonly err_code: number;
  readonly description: string;
}

/** What an error of JetStream means for whoever asked: nobody can say now (no leader, no resources), or it will not have it. */
export function failureOf(what: string, error: ApiError): NatsUnavailableError | NatsRefusedError {
  if (error.code !== STATUS.noResponders) return new NatsRefusedError(what, error);
  const Unavailable = JETSTREAM_OFF.has(error.err_code) ? NobodyListensError : NatsUnavailableError;
  return new Unavailable(`${what}: ${error.description} (${error.err_code})`);
}

/** For the server, and for the account. */
const JETSTREAM_OFF: ReadonlySet<number> = new Set([10_076, 10_039]);

/** The acknowledgement of a publish: `seq` where it is stored, or `error`. */
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

/** The fence was wrong: another message stands at the expected place. */
export function isWrongSequence(error: ApiError): boolean {
  return error.err_code === 10_071;
}

/** A stream of this name is there with another configuration. */
export function isStreamNameInUse(error: ApiError): boolean {
  return error.err_code === 10_058;
}

/** There is no such stream. */
export function isStreamNotFound(error: ApiError): boolean {
  return error.err_code === 10_059;
}

/** There is no such consumer. */
export function isConsumerNotFound(error: ApiError): boolean {
  return error.err_code === 10_014;
}

/** There is no such message. */
export function isMessageNotFound(error: ApiError): boolean {
  return error.err_code === 10_037;
}

/** A status message instead of data: its code, or 0 for data. Data of direct gets has headers, but no code. */
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
  /** Nobody listens: no such stream or consumer, or no leader for it. */
  noResponders: 503,
} as const;

/** The words that came with a status code. */
export function statusText(message: Msg): string {
  return message.headers?.description ?? '';
}
