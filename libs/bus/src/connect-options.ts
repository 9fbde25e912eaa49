/** The options of a connection, without types of the NATS library: published packages declare them. */

/** Server addresses, credentials and settings of a connection. */
export interface ConnectNatsOptions {
  /** `host:port` or `nats://host:port`, without credentials; several for a cluster. */
  readonly servers: string | readonly string[];
  readonly token?: string | undefined;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** The seed of a user's key, `SU…`. With a seed, no token and no password are sent. */
  readonly seed?: string | undefined;
  /** Requires TLS. Default: as the server says. */
  readonly tls?: boolean | undefined;
  /** Shown in the server's list of connections. Default `coxswain`. */
  readonly name?: string | undefined;
  /** Prefix of reply subjects, for users whose permissions restrict their inboxes to a prefix. */
  readonly inboxPrefix?: string | undefined;
  /** Timeout of the first connection, milliseconds. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
}
