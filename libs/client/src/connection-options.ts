/** Where the bus is and how one is let in. */
import { Actor, BOUNDS, CONNECTION_LIVENESS, readNatsAddress } from '@coxswain/protocol';
import { nkeyAuthenticator } from '@nats-io/nats-core';
import type { NodeConnectionOptions } from '@nats-io/transport-node';
import { InvalidOptionError } from './client-errors.ts';
import { checkText, checkTime } from './option-checks.ts';

/** What a client needs to reach a bus. */
export interface ConnectOptions {
  /** `nats://host:4222`, several, or one text with commas between them. Credentials in an address are used: `nats://token@host`, `nats://user:pass@host`. */
  readonly servers: string | readonly string[];
  /** A client has one transport. */
  readonly gateway?: undefined;
  /** Goes before a token in an address. */
  readonly token?: string | undefined;
  readonly user?: string | undefined;
  readonly pass?: string | undefined;
  /** The seed of a user's key, `SU…`, instead of all that: see `cox admin auth`. The key file also has its inbox prefix and tenant. */
  readonly seed?: string | undefined;
  /** Default `default`. */
  readonly tenant?: string | undefined;
  /** Name of the actor, recorded with each command that names no other actor. Not verified. Default: none. */
  readonly actor?: string | undefined;
  /** Shown in the server's list of connections. Default `coxswain-client`. */
  readonly name?: string | undefined;
  /** Where receipts and replies may go, for clients whose permissions are bound to a prefix of their own. `_INBOX` or `_INBOX_<name>`, and maybe more tokens. */
  readonly inboxPrefix?: string | undefined;
  /** How long the first connection to one server may take, milliseconds. Default 10,000: a TLS handshake over a slow network fits. */
  readonly connectTimeoutMs?: number | undefined;
}

/** The options of a connection to NATS. */
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
 * The options of the NATS library for these settings. It takes no credentials from addresses, so they are taken out here.
 * @throws InvalidOptionError for an option of another type or a time out of range; when an address cannot be read. The message quotes no
 *   address, as it may hold a token.
 * @internal
 */
export function natsOptions(options: ConnectOptions): NodeConnectionOptions {
  checkTime('connectTimeoutMs', options.connectTimeoutMs);
  for (const name of TEXTS) checkText(name, options[name]);
  const { actor } = options;
  // The parser of commands has the same rule: the first command would be rejected.
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
    timeout: options.connectTimeoutMs ?? 10_000,
    // A client outlives restarts of its server; what it waits for has bounds of its own.
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    pingInterval: CONNECTION_LIVENESS.pingMs,
    maxPingOut: CONNECTION_LIVENESS.unansweredMax,
    // A stack per request costs as much as the request.
    noAsyncTraces: true,
    ...(tls ? { tls: {} } : {}),
    ...(options.inboxPrefix === undefined ? {} : { inboxPrefix: options.inboxPrefix }),
    ...(options.seed !== undefined
      ? { authenticator: nkeyAuthenticator(new TextEncoder().encode(options.seed)) }
      : user !== undefined
        ? { user, pass: pass ?? '' }
        : token !== undefined
          ? { token }
          : {}),
  };
}
