/** The address and the token of a gateway. */
import { InvalidOptionError } from '../client-errors.ts';

/** Options for a connection to a gateway. */
export interface GatewayOptions {
  /**
   * `https://cox.example.com`, optionally with a path before `/v1`. A page from the gateway passes `location.origin`.
   */
  readonly gateway: string | URL;
  /** Excludes the options of NATS. */
  readonly servers?: undefined;
  /** A bearer token, or a function that returns one before each request, within 5 s, for tokens that are renewed. */
  readonly token: string | (() => string | Promise<string>);
  /** The timeout for the first response, in milliseconds. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** The function that sends requests. Default: the platform's `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

/** The names of the options of a gateway connection. */
export const GATEWAY_OPTIONS: Readonly<Record<keyof GatewayOptions, true>> = {
  gateway: true,
  servers: true,
  token: true,
  connectTimeoutMs: true,
  fetch: true,
};

/**
 * Normalizes the address before `/v1`, without a trailing slash.
 * @throws InvalidOptionError for an invalid address; the message does not quote it, as it may contain a password.
 */
export function gatewayAddress(gateway: string | URL): string {
  const text = String(gateway);
  if (!URL.canParse(text)) throw invalid('the gateway’s address cannot be read; expected https://host');
  const url = new URL(text);
  if (!/^https?:$/.test(url.protocol)) throw invalid(`a gateway speaks http: or https:, not ${url.protocol}`);
  // A token in an address would be written to logs.
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw invalid('the gateway’s address has no user, no query and no fragment; the token goes into `token`');
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

/** The time limit of a function that returns a token, in milliseconds. */
const TOKEN_WITHIN_MS = 5_000;

/**
 * Builds the value of the Authorization header.
 * @param withinMs The time limit of a function, in milliseconds.
 * @throws InvalidOptionError for a token with invalid characters, without quoting it; for a function that rejects or
 *   does not resolve in time.
 */
export async function bearerHeader(token: GatewayOptions['token'], withinMs = TOKEN_WITHIN_MS): Promise<string> {
  const given = typeof token === 'function' ? await renewed(token, withinMs) : token;
  if (typeof given !== 'string' || !/^[\x21-\x7e]+$/.test(given))
    throw new InvalidOptionError('the token is empty or has invalid characters', 'token');
  return `Bearer ${given}`;
}

function invalid(message: string): InvalidOptionError {
  return new InvalidOptionError(message, 'gateway');
}

async function renewed(token: () => string | Promise<string>, withinMs: number): Promise<string> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not resolve within ${withinMs} ms`)), withinMs);
  });
  try {
    return await Promise.race([token(), late]);
  } catch (error) {
    throw new InvalidOptionError(`the token function failed: ${(error as Error)?.message}`, 'token', { cause: error });
  } finally {
    clearTimeout(timer);
  }
}
