/** Converts errors of the NATS client library, which have no code. */
import { JetStreamApiError, JetStreamError } from '@nats-io/jetstream';
import { errors, PermissionViolationError } from '@nats-io/nats-core';
import { failureOf, NatsRefusedError, NatsUnavailableError, NoRespondersError, NotPermittedError } from './status.ts';

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
