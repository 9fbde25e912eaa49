/** Where a gateway is, and with which token. */
import { InvalidOptionError } from '../client-errors.ts';

/** What a client needs to reach a gateway. */
export interface GatewayOptions {
  /** `https://cox.example.com`; a page that the gateway has served gives `location.origin`. A path before `/v1` may stand in it. */
  readonly gateway: string | URL;
  /** A client has one transport. */
  readonly servers?: undefined;
  /** A bearer token, or a function that gives one before each request, within 5 s: for tokens that are renewed. */
  readonly token: string | (() => string | Promise<string>);
  /** How long the first answer may take, milliseconds. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** What sends requests. Default: the platform's `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

/** The options of a connection to a gateway. */
export const GATEWAY_OPTIONS: Readonly<Record<keyof GatewayOptions, true>> = {
  gateway: true,
  servers: true,
  token: true,
  connectTimeoutMs: true,
  fetch: true,
};

/**
 * The address that `/v1` stands behind, without a slash at its end.
 * @throws InvalidOptionError where it is none; the message does not quote it, as it may hold a password.
 */
export function gatewayAddress(gateway: string | URL): string {
  const text = String(gateway);
  if (!URL.canParse(text)) throw invalid('the gateway’s address cannot be read; expected https://host');
  const url = new URL(text);
  if (!/^https?:$/.test(url.protocol)) throw invalid(`a gateway speaks http: or https:, not ${url.protocol}`);
  // A token in an address ends in logs.
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw invalid('the gateway’s address has no user, no query and no fragment; the token goes into `token`');
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

/** The time limit of a function that gives a token, milliseconds. */
const TOKEN_WITHIN_MS = 5_000;

/**
 * The value of the header.
 * @param withinMs the time limit of a function, milliseconds.
 * @throws InvalidOptionError for a token that no header takes, without quoting it; for a function that rejects or does not resolve in time.
 */
export async function bearerHeader(token: GatewayOptions['token'], withinMs = TOKEN_WITHIN_MS): Promise<string> {
  const given = typeof token === 'function' ? await renewed(token, withinMs) : token;
  if (typeof given !== 'string' || !/^[\x21-\x7e]+$/.test(given))
    throw new InvalidOptionError('the token is empty, or has characters that no token has', 'token');
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
    throw new InvalidOptionError(`the function gave no token: ${(error as Error)?.message}`, 'token', { cause: error });
  } finally {
    clearTimeout(timer);
  }
}
