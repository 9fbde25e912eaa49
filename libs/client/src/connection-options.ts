/** The addresses and credentials of a NATS connection. */
import type { ConnectNatsOptions } from '@coxswain/bus';
import { Actor, BOUNDS, readNatsAddress } from '@coxswain/protocol';
import { InvalidOptionError } from './client-errors.ts';
import { checkText, checkTime } from './option-checks.ts';

/** Options for a connection to NATS. */
export interface ConnectOptions {
  /**
   * `nats://host:4222`, a list of addresses, or one comma-separated string. Credentials in an address are used:
   * `nats://token@host`, `nats://user:pass@host`.
   */
  readonly servers: string | readonly string[];
  /** Excludes the options of a gateway. */
  readonly gateway?: undefined;
  /** Takes precedence over a token in an address. */
  readonly token?: string | undefined;
  readonly user?: string | undefined;
  readonly pass?: string | undefined;
  /**
   * The seed of a user's nkey, `SU…`. It takes precedence over tokens and passwords. See `cox admin auth`; the key file
   * also contains the inbox prefix and the tenant.
   */
  readonly seed?: string | undefined;
  /** Default: `default`. */
  readonly tenant?: string | undefined;
  /** The actor of commands that name none. It is recorded, and not verified. Default: none. */
  readonly actor?: string | undefined;
  /** The name in the server's list of connections. Default: `coxswain-client`. */
  readonly name?: string | undefined;
  /**
   * The subject prefix of receipts and replies, for users whose permissions require their own. `_INBOX` or
   * `_INBOX_<name>`, optionally with more tokens.
   */
  readonly inboxPrefix?: string | undefined;
  /**
   * The timeout for the first connection to one server, in milliseconds. Default 10,000, which allows for a TLS
   * handshake over a slow network.
   */
  readonly connectTimeoutMs?: number | undefined;
}

/** The names of the options of a NATS connection. */
export const CONNECT_OPTIONS: Readonly<Record<keyof ConnectOptions, true>> = {
  servers: true,
  gateway: true,
  token: true,
  user: true,
  pass: true,
  seed: true,
  tenant: true,
  actor: true,
  name: true,
  inboxPrefix: true,
  connectTimeoutMs: true,
};

const TEXTS = ['token', 'user', 'pass', 'seed', 'actor', 'name', 'inboxPrefix'] as const;

/**
 * Checks the options, and extracts the credentials of addresses. A user takes precedence over a token.
 * @throws InvalidOptionError for an option of another type, a time out of range, or an invalid address. The message
 *   does not quote the address, which may contain a token.
 * @internal
 */
export function natsOptions(options: ConnectOptions): ConnectNatsOptions {
  checkTime('connectTimeoutMs', options.connectTimeoutMs);
  for (const name of TEXTS) checkText(name, options[name]);
  const { actor } = options;
  // Same rule as in the parser of commands, so that an invalid actor fails here and not with the first command.
  if (actor !== undefined && !(Actor.safeParse(actor).success && actor.isWellFormed()))
    throw new InvalidOptionError(`actor must be 1 to ${BOUNDS.actorMaxChars} characters of well-formed text`, 'actor');
  const given: unknown = options.servers;
  const isRead = Array.isArray(given) ? given.every((one) => typeof one === 'string') : typeof given === 'string';
  if (!isRead)
    throw new InvalidOptionError("servers must be an address or a list of addresses: 'nats://host:4222'", 'servers');
  const listed = typeof options.servers === 'string' ? options.servers.split(',') : options.servers;
  if (listed.length === 0) throw new InvalidOptionError('servers: is empty; expected nats://host:port', 'servers');
  const servers: string[] = [];
  let token = options.token;
  let user = options.user;
  let pass = options.pass;
  let tls = false;
  for (const [index, text] of listed.entries()) {
    const read = readNatsAddress(text.trim());
    if (!read.ok) throw new InvalidOptionError(`NATS address ${index + 1} ${read.problem}`, 'servers');
    const { server, isTls, username, password } = read.address;
    servers.push(server);
    tls ||= isTls;
    if (username === undefined) continue;
    if (password === undefined) token ??= username;
    else if (user === undefined) {
      user = username;
      pass = password;
    }
  }
  return {
    servers,
    name: options.name ?? 'coxswain-client',
    // It allows for a TLS handshake over a slow network.
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
    tls,
    inboxPrefix: options.inboxPrefix,
    seed: options.seed,
    ...(user === undefined ? { token } : { user, password: pass }),
  };
}
