/** Converts problem documents to the errors of the same failures over NATS. */
import { errorKindOf, natsFieldOf, SessionDeletedError, Tombstone } from '@coxswain/protocol';
import {
  BusNotPreparedError,
  CommandBlockedError,
  CommandRejectedError,
  CommandRevokedError,
  CoxswainError,
  NoHostError,
  ReadRefusedError,
  ReceiptTimeoutError,
  SessionNotFoundError,
} from '../client-errors.ts';

/** The members of a problem document that are used. */
export interface Problem {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly field: string | undefined;
  readonly sessionId: string | undefined;
  readonly more: Readonly<Record<string, unknown>> | undefined;
}

/** The command of a request. */
export interface SentAs {
  readonly commandId: string;
  readonly sessionId: string;
  readonly awaited: 'accepted' | 'delivered' | 'outcome';
  readonly waitedMs: number;
}

/** A problem response of a gateway. Internal to this folder: callers get the error of {@link errorOf}. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly problem: Problem;
  /** The requested delay before a retry, in milliseconds; 0 without one. */
  readonly retryAfterMs: number;
  /** Whether it ended a stream, and was not the response to a request. */
  readonly inStream: boolean;

  constructor(problem: Problem, { retryAfterMs = 0, inStream = false }: { retryAfterMs?: number; inStream?: boolean }) {
    super(problem.detail);
    this.problem = problem;
    this.retryAfterMs = retryAfterMs;
    this.inStream = inStream;
  }
}

/** Temporary problems: another gateway, or this one later, may handle the request. The request had no other effect. */
const PASSING: ReadonlySet<string> = new Set([
  'gateway_stopping',
  'gateway_busy',
  'auth_unavailable',
  'rate_limited',
  'too_many_watchers',
  'command_not_stored',
  'nats_unreachable',
  // A proxy in front of the gateways found none.
  'gateway_unreachable',
]);

/** Whether a problem is temporary. */
export function isPassing({ problem }: ProblemError): boolean {
  return PASSING.has(problem.code);
}

/** Reads a problem document; for any other body, derives the problem from the status. */
export function problemOf(status: number, body: unknown): Problem {
  const { code, detail, field, session_id, more } = (body ?? {}) as Record<string, unknown>;
  if (typeof code === 'string' && /^[a-z][a-z0-9_]{0,63}$/.test(code))
    return {
      status,
      code,
      detail: textOr(detail, code) ?? code,
      field: textOr(field),
      sessionId: textOr(session_id),
      more: typeof more === 'object' && more !== null ? (more as Record<string, unknown>) : undefined,
    };
  // Not from a gateway: a proxy without a live gateway, or another server.
  const away = status === 502 || status === 503 || status === 504;
  return {
    status,
    code: away ? 'gateway_unreachable' : 'answer_unreadable',
    detail: `the server at the address of the gateway responded with HTTP ${status}, and is not a gateway`,
    field: undefined,
    sessionId: undefined,
    more: undefined,
  };
}

/** Converts a problem to an error by its code, as the error of a command if one was sent. */
export function errorOf({ status, code, detail, field, sessionId, more }: Problem, sent?: SentAs): Error {
  switch (code) {
    case 'session_not_found':
      return new SessionNotFoundError(sessionId ?? sent?.sessionId ?? '');
    case 'session_deleted': {
      const tombstone = Tombstone.safeParse(more?.tombstone);
      return tombstone.success ? new SessionDeletedError(tombstone.data) : new CoxswainError(code, detail);
    }
    case 'bus_not_prepared':
      return new BusNotPreparedError();
    case 'no_host':
      return new NoHostError();
  }
  if (!sent)
    return isRefusal(code, status) ? new ReadRefusedError(code, detail, field) : new CoxswainError(code, detail);
  const { commandId } = sent;
  switch (code) {
    case 'receipt_timeout':
      return new ReceiptTimeoutError(sent);
    case 'prompt_blocked':
      return new CommandBlockedError(commandId, detail);
    case 'revoked':
      return new CommandRevokedError(commandId, undefined, detail);
  }
  return isRefusal(code, status)
    ? new CommandRejectedError(code, detail, {
        // Callers write bodies as on NATS, whatever the transport.
        field: field === undefined ? undefined : natsFieldOf(field),
        commandId,
        detail: more,
      })
    : new CoxswainError(code, detail);
}

function isRefusal(code: string, status: number): boolean {
  const kind = errorKindOf(code);
  return kind === 'rejection' || kind === 'refusal' || (status >= 400 && status < 500);
}

function textOr(value: unknown, otherwise?: string): string | undefined {
  return typeof value === 'string' ? value : otherwise;
}
