/** NATS addresses and credentials, in the forms that services, commands and connections use. */
import type { ConnectNatsOptions } from '@coxswain/bus';
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

/** Converts an address with credentials to connection options. @throws NatsUrlInvalidError. */
export function connectionTo({ servers, token, credentials }: NamedBus): ConnectNatsOptions {
  const parts = parseConnectionUrl(servers);
  const seeded = credentials ? { seed: credentials.seed, inboxPrefix: credentials.inboxPrefix } : {};
  return { ...parts, token: token ?? parts.token, ...seeded };
}
