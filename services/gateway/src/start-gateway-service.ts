/** The gateway service: sessions over HTTP. It stores no state, so any number of gateways can serve the same bus. */
import { setMaxListeners } from 'node:events';
import { createServiceLog, type LogTarget, secretMask } from '@coxswain/adapter-log';
import { connectionTo, endOnce, type NamedBus } from '@coxswain/adapter-nats';
import { startTelemetry } from '@coxswain/adapter-telemetry';
import { type BusClient, connect } from '@coxswain/client';
import { BOUNDS, cutText, DEFAULT_TENANT } from '@coxswain/protocol';
import { createApp, createContext } from './app/mod.ts';
import {
  type Authenticator,
  firstAuthenticator,
  type JwtOptions,
  newToken,
  openJsonWebTokens,
  openTokenFile,
  type Scope,
  TokenTable,
} from './auth/mod.ts';
import { readConsole } from './console/mod.ts';
import { createMetrics, GATEWAY_BOUNDS, type GatewayTimes, type StartOffers } from './context/mod.ts';
import { FEED_BOUNDS, type FeedBounds, SessionFeeds } from './feed/mod.ts';
import {
  createGuard,
  GatewayOptionError,
  isLoopback,
  listenOn,
  loopbackOrigins,
  UnusedConnections,
} from './http/mod.ts';

/** Options of the gateway. */
export interface GatewayServiceOptions {
  /** The bus. With keys of tenants, one entry per key: a gateway serves the tenants whose keys it has. */
  readonly nats: NamedBus | readonly NamedBus[];
  /** Folder of the log file. */
  readonly stateDir: string;
  /** Default `stdout`. */
  readonly log?: LogTarget | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Listen address. Default: 127.0.0.1 and a free port. */
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  /** Public origins of the gateway: `https://gw.example.com`. On loopback, local names are accepted in addition. */
  readonly publicUrls?: readonly string[] | undefined;
  /** Origins of other sites whose pages may use the gateway. */
  readonly allowedOrigins?: readonly string[] | undefined;
  /** A token file; see `cox admin token`. */
  readonly tokensFile?: string | undefined;
  readonly jwt?: Omit<JwtOptions, 'now'> | undefined;
  /**
   * Accepts two tokens of this tenant: one with these scopes (default `admin`), and one with the scope `read`. Allowed
   * on loopback only.
   */
  readonly startToken?:
    | {
        readonly tenant?: string | undefined;
        readonly name: string;
        readonly scopes?: readonly Scope[] | undefined;
        /** Tokens of an earlier start, which stay valid. Default: new ones. */
        readonly kept?: { readonly token: string; readonly readToken: string } | undefined;
      }
    | undefined;
  /** Build folder of the console. Without it, the gateway serves no console. */
  readonly consoleFolder?: string | undefined;
  /** Start options for the console's form. Without them, the gateway has no folder and no demo to offer. */
  readonly starts?: StartOffers | undefined;
  readonly times?: Partial<GatewayTimes> | undefined;
  readonly feedBounds?: Partial<FeedBounds> | undefined;
}

/** A running gateway. */
export interface GatewayService {
  /** Its base URL: the first public URL, or the listen address on loopback. */
  readonly url: string;
  readonly port: number;
  /** The token of `startToken`; null without that option. */
  readonly token: string | null;
  /** The token with the scope `read`, for other programs. Null if `token` is null. */
  readonly readToken: string | null;
  /** Whether the console is served. */
  readonly hasConsole: boolean;
  /**
   * Resolves with the error when a NATS connection has ended permanently, for example after its key was revoked. The
   * caller then stops the gateway.
   */
  readonly failed: Promise<Error>;
  /** Contract: rejects with the reason while NATS does not respond. */
  ping(): Promise<void>;
  /**
   * Stops the gateway: ends watchers with a problem, waits up to ten seconds for in-flight requests, and closes the
   * connections.
   */
  stop(): Promise<void>;
}

/**
 * Starts a gateway and resolves when it listens.
 * @throws GatewayOptionError, ListenPortInUseError, TokensUnreadableError; errors of connecting to NATS.
 */
export async function startGatewayService(options: GatewayServiceOptions): Promise<GatewayService> {
  const { host = '127.0.0.1', port = 0, allowedOrigins = [], stateDir } = options;
  const publicUrls = (options.publicUrls ?? []).map(originOf);
  if (!isLoopback(host) && publicUrls.length === 0)
    throw new GatewayOptionError(
      `${host} is reachable from other machines: give the public address of the gateway with --public-url https://NAME`,
    );
  if (!isLoopback(host) && options.startToken)
    throw new GatewayOptionError(`tokens are generated on loopback only, not on ${host}`);
  const buses = Array.isArray(options.nats) ? (options.nats as readonly NamedBus[]) : [options.nats as NamedBus];
  const addresses = buses.map(connectionTo);
  const start = createStartTokens(options);
  const env = options.env ?? process.env;
  const secrets = [
    start?.full.token,
    start?.reader.token,
    ...addresses.flatMap(({ token, password, seed }) => [token, password, seed]),
  ];
  const log = createServiceLog('gateway', options.log ?? 'stdout', stateDir, env, secrets);
  const now = () => Date.now();
  const authenticators: Authenticator[] = [];
  if (start) authenticators.push(new TokenTable([start.full.stored, start.reader.stored], now));
  if (options.tokensFile !== undefined) authenticators.push(await openTokenFile(options.tokensFile, log, now));
  if (options.jwt) authenticators.push(await openJsonWebTokens({ ...options.jwt, now }));
  if (authenticators.length === 0)
    throw new GatewayOptionError(
      'no authentication is configured: give a token file, or the JWK Set of JSON Web Tokens',
    );

  const consoleFiles = options.consoleFolder === undefined ? [] : await readConsole(options.consoleFolder);
  if (options.consoleFolder !== undefined && consoleFiles.length === 0)
    log.warn({ folder: options.consoleFolder }, 'the web console is not built and not served');
  const metrics = createMetrics();
  const masked = secretMask(env, secrets);
  // The gateway serves its metrics at its own route.
  const ownRegistry = { registry: metrics.registry, metrics: null } as const;
  const telemetry = await startTelemetry({ service: 'gateway', of: 'gateway', env, log, masked, ...ownRegistry });
  const clients = await connectAll(buses).catch(async (error: Error) => {
    await telemetry.close();
    throw error;
  });
  const stopping = new AbortController();
  // Each watcher adds a listener, and the number of watchers is limited.
  setMaxListeners(0, stopping.signal);
  const feeds = new SessionFeeds(metrics, { ...FEED_BOUNDS, ...options.feedBounds });
  const context = createContext({
    authenticator: firstAuthenticator(authenticators),
    clientOf: clients.of,
    ping: clients.ping,
    feeds,
    starts: options.starts,
    metrics,
    spans: telemetry.spans,
    log,
    now,
    stopping: stopping.signal,
    times: options.times,
  });
  let ownOrigins: readonly string[] = publicUrls;
  const guard = createGuard(() => ({ ownOrigins, allowedOrigins }));
  const app = await createApp({ context, guard, consoleFiles });
  const unused = new UnusedConnections(app.server);
  try {
    await listenOn(app, host, port);
    const bound = app.server.address();
    if (bound === null || typeof bound === 'string') throw new Error('the server does not listen on a port');
    if (isLoopback(host)) ownOrigins = [...publicUrls, ...loopbackOrigins(bound)];
    const url = ownOrigins[0] as string;
    log.info({ url, host, port: bound.port }, 'gateway is up');
    const stop = endOnce(async () => {
      log.info({ url }, 'gateway stops');
      stopping.abort();
      // A kept-alive connection waits for a next request, which the stopping gateway would not serve.
      const idleTimer = setInterval(() => unused.close(), 50);
      const tooLong = setTimeout(() => app.server.closeAllConnections(), GATEWAY_BOUNDS.stopWithinMs);
      await app.close();
      clearTimeout(tooLong);
      clearInterval(idleTimer);
      await feeds.stop();
      await clients.close();
      await telemetry.close();
    });
    return {
      url,
      port: bound.port,
      token: start?.full.token ?? null,
      readToken: start?.reader.token ?? null,
      hasConsole: consoleFiles.length > 0,
      failed: clients.failed,
      ping: clients.ping,
      stop,
    };
  } catch (error) {
    await app.close();
    await clients.close();
    await telemetry.close();
    throw error;
  }
}

function originOf(url: string): string {
  if (URL.canParse(url)) {
    const { origin, pathname, protocol } = new URL(url);
    if (/^https?:$/.test(protocol) && pathname === '/') return origin;
  }
  throw new GatewayOptionError(`${cutText(url, 200)} is not an address of a gateway; use https://NAME without a path`);
}

function createStartTokens({ startToken }: GatewayServiceOptions) {
  if (!startToken) return null;
  const { name, tenant = DEFAULT_TENANT, scopes = ['admin'], kept } = startToken;
  const created_at = new Date().toISOString();
  const createToken = (holder: string, allowed: readonly Scope[], token: string | undefined) =>
    newToken({ name: holder, tenant, scopes: [...allowed], created_at }, token);
  // The read token has its own name, so that its requests and watchers do not use up the limits of the main token.
  return {
    full: createToken(name, scopes, kept?.token),
    reader: createToken(
      `${cutText(name, BOUNDS.actorMaxChars - READER_SUFFIX.length)}${READER_SUFFIX}`,
      ['read'],
      kept?.readToken,
    ),
  };
}

const READER_SUFFIX = ' (reads)';

interface Clients {
  of(tenant: string): BusClient | null;
  ping(): Promise<void>;
  readonly failed: Promise<Error>;
  close(): Promise<void>;
}

/** Connects with each key. A connection without a tenant serves all other tenants. */
async function connectAll(buses: readonly NamedBus[]): Promise<Clients> {
  const connected: { readonly client: BusClient; readonly tenant: string | undefined }[] = [];
  const close = async () => void (await Promise.all(connected.map(({ client }) => client.close())));
  try {
    for (const { servers, token, credentials } of buses) {
      const { seed, inboxPrefix, tenant } = credentials ?? {};
      const client = await connect({ servers, token, seed, inboxPrefix, tenant, name: 'cox-gateway' });
      connected.push({ client, tenant });
    }
  } catch (error) {
    await close();
    throw error;
  }
  const anyTenants = connected.find(({ tenant }) => tenant === undefined)?.client ?? null;
  const failed = Promise.race(
    connected.map(async ({ client }) => (await client.closed()) ?? new Promise<never>(() => undefined)),
  );
  return {
    of: (named) => connected.find(({ tenant }) => tenant === named)?.client ?? anyTenants?.forTenant(named) ?? null,
    ping: async () => void (await Promise.all(connected.map(({ client }) => client.roundTripMs()))),
    failed,
    close,
  };
}
