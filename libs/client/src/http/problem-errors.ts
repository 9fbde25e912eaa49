/** Problem documents, as the errors that the same trouble is over the bus. */
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

/** A problem document as far as it is read. */
export interface Problem {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly field: string | undefined;
  readonly sessionId: string | undefined;
  readonly more: Readonly<Record<string, unknown>> | undefined;
}

/** The command that a request was for. */
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
  /** When it asks to be asked again; 0 where it does not say. */
  readonly retryAfterMs: number;
  /** Whether it has ended a stream, and was not the answer to a request. */
  readonly inStream: boolean;

  constructor(problem: Problem, { retryAfterMs = 0, inStream = false }: { retryAfterMs?: number; inStream?: boolean }) {
    super(problem.detail);
    this.problem = problem;
    this.retryAfterMs = retryAfterMs;
    this.inStream = inStream;
  }
}

/** What passes by itself: another gateway, or this one in a moment, takes the request. Nothing has become of it but maybe itself. */
const PASSING: ReadonlySet<string> = new Set([
  'gateway_stopping',
  'gateway_busy',
  'auth_unavailable',
  'rate_limited',
  'too_many_watchers',
  'command_not_stored',
  'nats_unreachable',
  // Whoever stands before gateways has found none.
  'gateway_unreachable',
]);

/** Whether a problem is one that passes by itself. */
export function isPassing({ problem }: ProblemError): boolean {
  return PASSING.has(problem.code);
}

/** Reads a problem document; of anything else its status tells what it is. */
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
  // Not ours: a proxy that has no gateway behind it now, or something that is no gateway at all.
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

/** The error that a problem is, by its code: of a command where one was sent, else of a read. */
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
