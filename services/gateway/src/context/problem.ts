/** Problem documents (RFC 9457) for rejected and failed requests, each with a code of the error catalogue. */
import type { CoxswainError } from '@coxswain/client';
import {
  ERROR_CATALOGUE,
  httpStatusOf,
  isErrorCode,
  type JsonObject,
  SessionDeletedError,
  Tombstone,
  toWire,
} from '@coxswain/protocol';
import type { FastifyReply } from 'fastify';
import * as z from 'zod';

/** A problem document. */
export const ProblemDocument = z.strictObject({
  type: z.string().meta({ description: 'urn:coxswain:problem:<code>' }),
  title: z.string().meta({ description: 'Meaning of the code.' }),
  status: z.number().int().min(400).max(599),
  detail: z.string().meta({ description: 'The problem in this request.' }),
  code: z.string().meta({ description: 'Stable error code of docs/reference/errors.md. Programs branch on it.' }),
  advice: z.string().optional().meta({ description: 'The remedy.' }),
  field: z.string().optional().meta({ description: 'The invalid field, if any.' }),
  session_id: z.string().optional(),
  command_id: z
    .string()
    .optional()
    .meta({ description: 'The rejected command, or the stored command that may still take effect.' }),
  more: z.looseObject({}).optional().meta({ description: 'Details for programs.' }),
});
export type ProblemDocument = z.infer<typeof ProblemDocument>;

/** Further members of a problem, and headers of its response. */
export interface ProblemMore {
  readonly field?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly commandId?: string | undefined;
  readonly detail?: Readonly<Record<string, unknown>> | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** An error that becomes a problem document. Routes and guards throw it; the app sends the document. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly code: string;
  readonly more: ProblemMore;

  constructor(code: string, message: string, more: ProblemMore = {}) {
    super(message);
    this.code = code;
    this.more = more;
  }

  get status(): number {
    return httpStatusOf(this.code);
  }

  get document(): ProblemDocument {
    const { field, sessionId, commandId, detail } = this.more;
    const known = isErrorCode(this.code) ? ERROR_CATALOGUE[this.code] : null;
    return {
      type: `urn:coxswain:problem:${this.code}`,
      title: known?.meaning ?? 'The session host rejected it with a code that this release does not know.',
      status: this.status,
      detail: this.message,
      code: this.code,
      ...(known ? { advice: known.caller } : {}),
      ...(field === undefined ? {} : { field }),
      ...(sessionId === undefined ? {} : { session_id: sessionId }),
      ...(commandId === undefined ? {} : { command_id: commandId }),
      ...(detail === undefined ? {} : { more: detail as JsonObject }),
    };
  }
}

/** The problem of a client that disconnected (499, for logs and metrics). It ends the work for the request. */
export function requestClosedProblem(): Problem {
  return new Problem('request_closed', 'the client closed the request before the response');
}

/** The problem of a request that the gateway has no room for at the moment (503). */
export function busyProblem(message: string): Problem {
  return new Problem('gateway_busy', message, { headers: { 'retry-after': '1' } });
}

/** A signal that aborts with {@link requestClosedProblem} when the client disconnects. */
export function abortOnDisconnect({ raw }: Pick<FastifyReply, 'raw'>): AbortSignal {
  const controller = new AbortController();
  const abort = () => controller.abort(requestClosedProblem());
  if (raw.destroyed) abort();
  else raw.once('close', abort);
  return controller.signal;
}

/**
 * Converts an error to a problem. Errors of the client, the protocol and Fastify keep their meaning by their codes. An
 * unknown error becomes `internal` (500).
 */
export function problemFrom(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const { cause } = (error ?? {}) as { readonly cause?: unknown };
  // A signal of this gateway has aborted a call of the client; its reason is the problem.
  if (cause instanceof Problem && (error as CoxswainError).code === 'aborted') return cause;
  const { code, message, field, commandId, sessionId, statusCode, ...more } = error as {
    readonly code?: unknown;
    readonly statusCode?: unknown;
    readonly message?: string;
  } & ProblemMore;
  // The tombstone of a deleted session, so that programs can see who deleted it, and when.
  const detail = more.detail ?? (error instanceof SessionDeletedError ? tombstoneOnWire(error) : undefined);
  if (typeof code === 'string') {
    const ours = FASTIFY_CODES[code];
    if (ours) return new Problem(ours.code, ours.message);
    // Other errors of Fastify with a 4xx status are errors of the request.
    if (code.startsWith('FST_ERR_') && typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500)
      return new Problem('request_unreadable', `the request is invalid: ${message ?? code}`);
    // The message of an internal error goes only to the log.
    if (/^[a-z][a-z0-9_]*$/.test(code) && code !== 'internal')
      return new Problem(code, message ?? code, { field, commandId, sessionId, detail, headers: retryAfter(code) });
  }
  if (isNatsUnavailable(error))
    return new Problem('nats_unreachable', 'NATS does not respond', { headers: { 'retry-after': '2' } });
  return new Problem('internal', 'internal error without a code; the log of the gateway has the details');
}

function tombstoneOnWire({ tombstone }: SessionDeletedError): Readonly<Record<string, unknown>> {
  const form = toWire(Tombstone, tombstone);
  return form.ok ? { tombstone: form.value } : {};
}

function retryAfter(code: string): Readonly<Record<string, string>> | undefined {
  const status = httpStatusOf(code);
  return status === 503 || status === 429 ? { 'retry-after': '2' } : undefined;
}

/**
 * Whether the NATS library reports, here or in a cause, that NATS does not respond. Its errors are recognized by name.
 */
function isNatsUnavailable(error: unknown): boolean {
  const { name, cause } = (error ?? {}) as { readonly name?: unknown; readonly cause?: unknown };
  if (typeof name === 'string' && NATS_UNAVAILABLE_ERRORS.has(name)) return true;
  return cause !== undefined && cause !== error && isNatsUnavailable(cause);
}

const NATS_UNAVAILABLE_ERRORS: ReadonlySet<string> = new Set([
  'TimeoutError',
  'RequestError',
  'NoRespondersError',
  'ConnectionError',
  'ClosedConnectionError',
  'DrainingConnectionError',
]);

const FASTIFY_CODES: Readonly<Record<string, { readonly code: string; readonly message: string }>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: {
    code: 'body_too_large',
    message: 'the body is larger than 256 KiB (AG-UI: 4 MiB)',
  },
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    code: 'unsupported_media_type',
    message:
      'the content type must be application/json (curl: --json); prompt, steer, remind and followup also accept text/plain',
  },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    code: 'invalid_field',
    message: 'the length of the body differs from content-length',
  },
  FST_ERR_BAD_URL: { code: 'route_not_found', message: 'the URL is invalid' },
  FST_ERR_MAX_PARAM_LENGTH: { code: 'invalid_id', message: 'an id in the URL is too long' },
};

/**
 * Renames the field of an error to its name in the request, also in the message.
 * @param nameOf maps the field of the error to its name in the request.
 * @returns the same error if it has no field or the name is equal; otherwise a {@link Problem}.
 */
export function withRenamedField(error: unknown, nameOf: (field: string) => string): unknown {
  const problem = problemFrom(error);
  const { field } = problem.more;
  if (field === undefined) return error;
  const named = nameOf(field);
  if (named === field) return error;
  const message = problem.message.startsWith(`${field}:`)
    ? `${named}${problem.message.slice(field.length)}`
    : problem.message.replace(JSON.stringify(field), JSON.stringify(named));
  return new Problem(problem.code, message, { ...problem.more, field: named });
}

/** Sends a problem document with its status and headers. */
export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply
    .code(problem.status)
    .headers(problem.more.headers ?? {})
    .type('application/problem+json')
    .send(JSON.stringify(problem.document));
}
