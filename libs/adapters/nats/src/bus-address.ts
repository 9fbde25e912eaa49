/** NATS addresses and credentials, in the forms that services, commands and connections use. */
import type { SeedCredentials } from '@coxswain/ports/discovery';
import { parseConnectionUrl } from './connection-url.ts';

/** The address of NATS and the credentials for it, as services and commands receive them. */
export interface NamedBus {
  /** May carry credentials: `nats://token@host:port`. */
  readonly servers: string;
  readonly token?: string | undefined;
  /** The key of a NATS user. It takes precedence over a token. */
  readonly credentials?: SeedCredentials | undefined;
}

/** Server addresses, credentials and settings of a connection. */
export interface ConnectNatsOptions {
  /** `host:port` or `nats://host:port`, without credentials; several for a cluster. */
  readonly servers: string | readonly string[];
  readonly token?: string | undefined;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** The seed of a user's key, `SU…`. With a seed, no token and no password are sent. */
  readonly seed?: string | undefined;
  /** Shown in the server's list of connections. Default `coxswain`. */
  readonly name?: string | undefined;
  /** Prefix of reply subjects, for users whose permissions restrict their inboxes to a prefix. */
  readonly inboxPrefix?: string | undefined;
  /** Timeout of the first connection, milliseconds. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
}

/** Converts an address with credentials to connection options. @throws NatsUrlInvalidError. */
export function connectionTo({ servers, token, credentials }: NamedBus): ConnectNatsOptions {
  const parts = parseConnectionUrl(servers);
  const seeded = credentials ? { seed: credentials.seed, inboxPrefix: credentials.inboxPrefix } : {};
  return { ...parts, token: token ?? parts.token, ...seeded };
}
