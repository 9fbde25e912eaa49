/** A bus as it is named to services and commands: addresses, and what lets this process in. */
import type { SeedCredentials } from '@coxswain/ports/discovery';
import { parseConnectionUrl } from './server/connection-url.ts';

/** Where a bus is and who asks. */
export interface NamedBus {
  /** May carry credentials: `nats://token@host:port`. */
  readonly servers: string;
  readonly token?: string | undefined;
  /** A user's key. It goes before a token. */
  readonly credentials?: SeedCredentials | undefined;
}

/** Where the server is, and who asks. */
export interface ConnectNatsOptions {
  /** `host:port` or `nats://host:port`, without credentials; several for a cluster. */
  readonly servers: string | readonly string[];
  readonly token?: string | undefined;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** The seed of a user's key, `SU…`: then no token and no password are sent. */
  readonly seed?: string | undefined;
  /** Shown in the server's list of connections. Default `coxswain`. */
  readonly name?: string | undefined;
  /** Where answers may go, for services whose permissions are bound to a prefix of their own. */
  readonly inboxPrefix?: string | undefined;
  /** How long the first connection may take. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
}

/** The options of a connection to it. @throws NatsUrlInvalidError. */
export function connectionTo({ servers, token, credentials }: NamedBus): ConnectNatsOptions {
  const parts = parseConnectionUrl(servers);
  const seeded = credentials ? { seed: credentials.seed, inboxPrefix: credentials.inboxPrefix } : {};
  return { ...parts, token: token ?? parts.token, ...seeded };
}
