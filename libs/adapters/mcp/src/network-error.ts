/** Failures of fetch below HTTP, told apart by the system's codes. */

/** Whether a fetch failed below HTTP: no connection came about, or it broke. */
export function isNetworkError(error: unknown): boolean {
  return error instanceof TypeError && error.cause !== undefined;
}

/** Whether no connection came about, so that nothing was sent. */
export function neverConnected(error: unknown): boolean {
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

/** What lies below a failed fetch, in words. */
export function causeOf(error: unknown): string {
  const { cause } = error as TypeError;
  const { code, message } = (cause ?? {}) as { code?: unknown; message?: unknown };
  return [code, message].filter((part) => typeof part === 'string' && part !== '').join(' ') || String(cause);
}
