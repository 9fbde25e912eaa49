/** Converts errors of a host's parts into errors of the public API. */
import { CoxswainError } from '@coxswain/client';
import { isErrorCode } from '@coxswain/protocol';

/**
 * Converts an error with a catalogued code into a `CoxswainError` whose cause is that error. A `CoxswainError` stays
 * unchanged.
 * @returns null for any other error.
 */
export function coded(error: unknown): CoxswainError | null {
  if (error instanceof CoxswainError) return error;
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  const isCoded = typeof code === 'string' && isErrorCode(code);
  return isCoded ? new CoxswainError(code, String(message), { cause: error }) : null;
}

/**
 * Runs work of the host for a caller of the public API. @throws CoxswainError only, with the code `internal` for an
 * error without a code.
 */
export async function withCodes<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw coded(error) ?? new CoxswainError('internal', message, { cause: error });
  }
}
