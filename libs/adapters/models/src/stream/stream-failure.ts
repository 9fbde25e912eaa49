/** Converts the error of an attempt to a failure with a code of the error catalogue. */
import { APICallError } from '@ai-sdk/provider';
import { cutText, type Failure } from '@coxswain/protocol';
import { isContextOverflow } from './context-overflow.ts';
import type { Wire } from './wire.ts';

const MESSAGE_MAX_CHARS = 2_000;

/** The stream of an answer ended or continued in an invalid way. The message is a clause. */
export class BrokenStreamError extends Error {}

/** The provider reported an error within the stream. `reported` is the error as received. */
export class ReportedError extends Error {
  readonly reported: unknown;
  constructor(reported: unknown) {
    super('the provider reported an error in its stream');
    this.reported = reported;
  }
}

/**
 * The failure of an attempt. `retryable`: the same request may succeed if it is repeated. The message is one line of at
 * most 2,000 characters.
 * @param secret is replaced in the message, before it is cut: a part of the secret would not be found.
 */
export function failureOf(error: unknown, wire: Wire, provider: string, secret: string | null): Failure {
  const whole = wholeFailureOf(error, wire, provider);
  const message = secret ? whole.message.replaceAll(secret, '[key]') : whole.message;
  return { ...whole, message: cutText(inOneLine(message), MESSAGE_MAX_CHARS) };
}

function wholeFailureOf(error: unknown, wire: Wire, provider: string): Failure {
  if (wire.timedOut) return failure('model_timeout', `${provider}: ${wire.timedOut}`, true);
  if (wire.networkError) {
    return failure('model_unavailable', `${provider} cannot be reached: ${sentenceOf(wire.networkError)}`, true);
  }
  if (wire.isWebPage) {
    const status = wire.response?.status;
    return refused(
      `${provider} answered ${status} with a web page (text/html), not with a model's answer: check base_url`,
    );
  }
  if (wire.isRedirect) {
    const status = wire.response?.status;
    return refused(`${provider} answered ${status} with a redirect, which the host does not follow: check base_url`);
  }
  if (wire.tooLargeBytes !== null)
    return refused(`${provider} sent more than ${wire.tooLargeBytes} bytes in one answer; the host reads no more`);
  const responded = wire.response !== null && wire.response.status < 400;
  if (error instanceof BrokenStreamError) return broken(provider, error.message);
  if (error instanceof ReportedError) return reported(error.reported, provider);
  if (!APICallError.isInstance(error)) {
    return responded
      ? broken(provider, sentenceOf(error))
      : refused(`the request to ${provider} is invalid: ${sentenceOf(error)}`);
  }
  const status = error.statusCode;
  if ((responded || isRefusal(status)) && isContextOverflow(error))
    return overflow(`${provider} refused the prompt: ${error.message}`);
  if (responded) return inStream(status ?? null, provider, sentenceOf(error));
  return status === undefined
    ? failure('model_unavailable', `${provider} cannot be reached: ${sentenceOf(error)}`, true)
    : ofStatus(status, `${provider} answered ${status}: ${error.message}`);
}

/** Whether the status means that the request itself is invalid. */
function isRefusal(status: number | undefined): boolean {
  return status === 400 || status === 413 || status === 422;
}

/** Whether the status means that the provider limits the rate of requests. */
function isRateLimit(status: number): boolean {
  return status === 429;
}

/** Whether the status means that the provider fails, or stopped waiting. */
function isUnavailable(status: number): boolean {
  return status >= 500 || status === 408;
}

function ofStatus(status: number, message: string): Failure {
  if (isRateLimit(status)) return failure('model_rate_limited', message, true);
  if (isUnavailable(status)) return failure('model_unavailable', message, true);
  return refused(message);
}

function reported(error: unknown, provider: string): Failure {
  if (isContextOverflow(error)) return overflow(`${provider} refused the prompt: ${sentenceOf(error)}`);
  if (APICallError.isInstance(error)) return inStream(error.statusCode ?? null, provider, error.message);
  const { statusCode, type, code } = (typeof error === 'object' && error !== null ? error : {}) as {
    statusCode?: unknown;
    type?: unknown;
    code?: unknown;
  };
  const status =
    typeof statusCode === 'number' ? statusCode : (STATUS_OF_TYPE.get(type) ?? STATUS_OF_TYPE.get(code) ?? null);
  return inStream(status, provider, sentenceOf(error));
}

// The adapters report unknown errors within a stream with the status 500. That means only a broken stream.
function inStream(status: number | null, provider: string, message: string): Failure {
  if (status === null || status === 500 || status < 400) return broken(provider, message);
  return ofStatus(status, `${provider} broke its answer off: ${message}`);
}

// https://docs.anthropic.com/en/api/errors and https://platform.openai.com/docs/guides/error-codes
const STATUS_OF_TYPE: ReadonlyMap<unknown, number> = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['rate_limit_error', 429],
  ['rate_limit_exceeded', 429],
  ['overloaded_error', 529],
  ['server_error', 503],
]);

function broken(provider: string, why: string): Failure {
  return failure('model_stream_broken', `${provider} broke its answer off: ${why}`, true);
}

function overflow(message: string): Failure {
  return failure('context_overflow', message, false);
}

function refused(message: string): Failure {
  return failure('model_request_failed', message, false);
}

function failure(code: string, message: string, retryable: boolean): Failure {
  return { code, message, retryable };
}

// A vendor's text may have several lines, and logs, receipts and lists use one. In linear time: a single expression for
// line breaks with surrounding space would backtrack over each run of space.
function inOneLine(message: string): string {
  const lines = message.split(/[\r\n\u2028\u2029]/).map((line) => line.trim());
  return lines.filter((line) => line !== '').join(' ');
}

// undici's message is only "fetch failed" or "terminated"; its cause has the reason.
function sentenceOf(error: unknown): string {
  if (typeof error === 'string') return error;
  if (error instanceof Error) {
    const { cause } = error;
    const because = cause instanceof Error ? cause.message || String((cause as { code?: unknown }).code ?? '') : '';
    return because && !error.message.includes(because) ? `${error.message}: ${because}` : error.message;
  }
  const { message } = (typeof error === 'object' && error !== null ? error : {}) as { message?: unknown };
  return typeof message === 'string' ? message : JSON.stringify(error);
}
