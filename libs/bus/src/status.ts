/** Answers of NATS: their bodies and status codes. */
import type { Msg } from '@nats-io/nats-core';
import type { ApiError } from './errors.ts';

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
