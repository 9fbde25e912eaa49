/** A bus as it is named to services and commands: addresses, and what lets this process in. */
import type { SeedCredentials } from '@coxswain/ports/discovery';
import type { ConnectNatsOptions } from './connect.ts';
import { parseConnectionUrl } from './server/connection-url.ts';

/** Where a bus is and who asks. */
export interface NamedBus {
  /** May carry credentials: `nats://token@host:port`. */
  readonly servers: string;
  readonly token?: string | undefined;
  /** A user's key. It goes before a token. */
  readonly credentials?: SeedCredentials | undefined;
}

/** The options of a connection to it. @throws NatsUrlInvalidError. */
export function connectionTo({ servers, token, credentials }: NamedBus): ConnectNatsOptions {
  const parts = parseConnectionUrl(servers);
  const seeded = credentials ? { seed: credentials.seed, inboxPrefix: credentials.inboxPrefix } : {};
  return { ...parts, token: token ?? parts.token, ...seeded };
}
