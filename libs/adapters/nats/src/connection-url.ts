/** `NATS_URL` is not a NATS address, or a comma-separated list of NATS addresses. */
export class NatsUrlInvalidError extends Error {
  readonly code = 'nats_url_invalid';

  constructor(reason: string) {
    // The message does not contain the URL: it may contain a token.
    super(`NATS_URL cannot be used: ${reason}`);
    this.name = 'NatsUrlInvalidError';
  }
}

/** Addresses and credentials separately, as NATS client libraries require them. */
export interface ConnectionParts {
  /** Without credentials: `nats://127.0.0.1:4222`. At least one. */
  readonly servers: readonly string[];
  readonly token?: string;
  readonly user?: string;
  readonly password?: string;
}

/** Builds a URL that contains the token, as the `nats` tool and other simple clients expect in `NATS_URL`. */
export function connectionUrl(connection: { readonly url: string; readonly token: string }): string {
  const url = new URL(connection.url);
  url.username = connection.token;
  return url.href.replace(/\/$/, '');
}

/**
 * Parses a `NATS_URL`: one or more addresses, separated by commas, each `scheme://[token@|user:password@]host`. The
 * default scheme is `nats://`. NATS clients for Node do not read credentials from the address.
 *
 * @throws NatsUrlInvalidError if an address is invalid, or two contain different credentials.
 */
export function parseConnectionUrl(text: string): ConnectionParts {
  const urls = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map(readUrl);
  const credentials = new Map(urls.filter(({ username }) => username !== '').map((url) => [userInfo(url), url]));
  if (urls.length === 0) throw new NatsUrlInvalidError('it names no server');
  if (credentials.size > 1) throw new NatsUrlInvalidError('its addresses carry different credentials');
  const [carrier] = credentials.values();
  return { servers: urls.map((url) => `${url.protocol}//${url.host}${bare(url.pathname)}`), ...credentialsOf(carrier) };
}

function readUrl(address: string): URL {
  let url: URL;
  try {
    url = new URL(address.includes('://') ? address : `nats://${address}`);
  } catch {
    // Without a cause: it would quote the address with its token.
    throw new NatsUrlInvalidError('it contains an invalid URL');
  }
  if (!['nats:', 'tls:', 'ws:', 'wss:'].includes(url.protocol)) {
    throw new NatsUrlInvalidError(`${url.protocol}// is not nats://, tls://, ws:// or wss://`);
  }
  if (url.hostname === '') throw new NatsUrlInvalidError('an address in it names no host');
  return url;
}

function credentialsOf(url: URL | undefined): Omit<ConnectionParts, 'servers'> {
  if (!url) return {};
  const user = decodeURIComponent(url.username);
  return url.password === '' ? { token: user } : { user, password: decodeURIComponent(url.password) };
}

function userInfo(url: URL): string {
  return `${url.username}:${url.password}`;
}

function bare(path: string): string {
  return path === '/' ? '' : path;
}
