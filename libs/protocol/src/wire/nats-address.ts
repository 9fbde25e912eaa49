/** Addresses of NATS servers as users write them. */

/** One parsed address. */
export interface NatsAddress {
  /** `host:port`, an IPv6 address in brackets. */
  readonly server: string;
  readonly isTls: boolean;
  /** A user name without a password is a token. */
  readonly username: string | undefined;
  readonly password: string | undefined;
}

/**
 * The address, or why it cannot be used. `problem` continues a sentence that starts with the option's name. It quotes
 * nothing of the address but its scheme.
 */
export type NatsAddressReading =
  | { readonly ok: true; readonly address: NatsAddress }
  | { readonly ok: false; readonly problem: string };

/**
 * Reads `nats://host:port`, `tls://host:port` or `host:port`. `token@` or `user:password@` may precede the host. The
 * default port is 4222.
 */
export function readNatsAddress(text: string): NatsAddressReading {
  const withScheme = /^[a-z]+:\/\//i.test(text) ? text : `nats://${text}`;
  const scheme = withScheme.slice(0, withScheme.indexOf(':')).toLowerCase();
  if (scheme !== 'nats' && scheme !== 'tls')
    return { ok: false, problem: `has the scheme ${scheme}; expected nats:// or tls://` };
  // URL validates and normalizes host names only for schemes such as http.
  const special = withScheme.replace(/^[a-z]+:/i, 'http:');
  const url = URL.canParse(special) ? new URL(special) : null;
  // URL would read `http:///path` as the host `path`.
  if (url === null || /^http:\/\/+[/\\]/.test(special))
    return { ok: false, problem: 'cannot be read; expected nats://host:port' };
  // URL omits http's default port, even if the user wrote :80.
  const port = url.port || (/:0*80\/?$/.test(text) ? '80' : '4222');
  if (port === '0') return { ok: false, problem: 'has the port 0; expected 1 to 65535' };
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '')
    return { ok: false, problem: 'has a path; expected nats://host:port' };
  try {
    const username = url.username === '' ? undefined : decodeURIComponent(url.username);
    const password = url.password === '' ? undefined : decodeURIComponent(url.password);
    return { ok: true, address: { server: `${url.hostname}:${port}`, isTls: scheme === 'tls', username, password } };
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
    return { ok: false, problem: 'has credentials with a % that starts no percent-encoded character; write it as %25' };
  }
}
