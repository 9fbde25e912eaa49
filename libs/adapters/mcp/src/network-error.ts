/** Classifies failures of `fetch` below HTTP by the system's error codes. */

/** Whether a fetch failed below HTTP: the connection was not established, or it broke. */
export function isNetworkError(error: unknown): boolean {
  return error instanceof TypeError && error.cause !== undefined;
}

/** The cause of a failed fetch that did not send its request. */
export class NotSentError extends Error {
  override readonly name = 'NotSentError';
}

/** Whether nothing was sent: the request was refused here, or no connection was established. */
export function neverConnected(error: unknown): boolean {
  if ((error as TypeError).cause instanceof NotSentError) return true;
  const { code } = ((error as TypeError).cause ?? {}) as { code?: unknown };
  return typeof code === 'string' && NEVER_CONNECTED.has(code);
}

const NEVER_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** The cause of a failed fetch: the system's code and message. */
export function causeOf(error: unknown): string {
  const { cause } = error as TypeError;
  const { code, message } = (cause ?? {}) as { code?: unknown; message?: unknown };
  return [code, message].filter((part) => typeof part === 'string' && part !== '').join(' ') || String(cause);
}
