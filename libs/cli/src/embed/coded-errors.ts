/** Errors of the parts of a host, as the public API throws them. */
import { CoxswainError } from '@coxswain/client';
import { isErrorCode } from '@coxswain/protocol';

/** An error with a code of the catalogue as a `CoxswainError`, with the error as its cause; null for any other error. */
export function coded(error: unknown): CoxswainError | null {
  if (error instanceof CoxswainError) return error;
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  const isCoded = typeof code === 'string' && isErrorCode(code);
  return isCoded ? new CoxswainError(code, String(message), { cause: error }) : null;
}

/** Runs work of the host for a caller of the public API. @throws CoxswainError alone; `internal` for an error without a code. */
export async function withCodes<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw coded(error) ?? new CoxswainError('internal', message, { cause: error });
  }
}
