/** What the bus does not let a user do. */
import { errors } from '@nats-io/nats-core';

/** Whether an error is the server's "this user may not". */
export function isNotPermitted(error: unknown): boolean {
  if (error instanceof errors.PermissionViolationError) return true;
  const cause = (error as { cause?: unknown } | null)?.cause;
  return cause !== undefined && cause !== error && isNotPermitted(cause);
}
