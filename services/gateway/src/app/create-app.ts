/** The HTTP application: authentication, body parsing, error responses and metrics. The routes are in `routes/`. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { cutText, isErrorCode, nearestWord } from '@coxswain/protocol';
import { RequestRates } from '@coxswain/session';
import Fastify, { type FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { bearerOf, isAllowed } from '../auth/mod.ts';
import { type ConsoleFile, consoleRoutes } from '../console/mod.ts';
import {
  countRequest,
  GATEWAY_BOUNDS,
  type GatewayContext,
  type GatewayMetrics,
  Problem,
  principalOf,
  problemFrom,
  rateLimitedProblem,
  requestClosedProblem,
  sendProblem,
} from '../context/mod.ts';
import {
  addBodyParsers,
  closeQueuedResponses,
  isNavigation,
  MethodTable,
  NO_UPGRADE,
  type RequestGuard,
  rejectExpectation,
  rejectRepeatedHeaders,
  respondToUnreadable,
  strictValidation,
  traceRequests,
} from '../http/mod.ts';
import {
  aguiRoutes,
  approvalRoutes,
  commandRoutes,
  documentRoutes,
  eventRoutes,
  openApi,
  POST_SEGMENTS,
  prepareSockets,
  readRoutes,
  SOCKET_ROUTES,
  serviceRoutes,
  sessionRoutes,
  socketRoutes,
  startOptionRoutes,
  tokenRoutes,
} from '../routes/mod.ts';

/** Options of the application. */
export interface AppOptions {
  readonly context: GatewayContext;
  readonly guard: RequestGuard;
  /** Files of the console; empty if it is not served. */
  readonly consoleFiles?: readonly ConsoleFile[] | undefined;
}

/** The application without routes. */
function createBareApp(metrics: GatewayMetrics) {
  return Fastify({
    bodyLimit: GATEWAY_BOUNDS.bodyMaxBytes,
    // Longer than any id: the schema of a route reports ids that are too long.
    routerOptions: { maxParamLength: 1_024 },
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    connectionTimeout: GATEWAY_BOUNDS.standstillMs,
    keepAliveTimeout: GATEWAY_BOUNDS.keepAliveMs,
    requestTimeout: GATEWAY_BOUNDS.requestTimeoutMs,
    http: {
      maxHeaderSize: GATEWAY_BOUNDS.headersMaxBytes,
      headersTimeout: GATEWAY_BOUNDS.headersTimeoutMs,
      // The request guard reports a missing Host header with a message.
      requireHostHeader: false,
    },
    // Clients could forge the forwarding headers of a proxy.
    trustProxy: false,
    // Requests that never reach a route get a problem document, too.
    frameworkErrors: (error, { raw }, reply) => {
      const problem = problemFrom(error);
      metrics.refused.inc({ code: problem.code });
      // No hook runs for these errors. If the request was an upgrade, the server no longer manages its socket.
      if (raw.headers.upgrade !== undefined) reply.raw.once('finish', () => raw.socket.destroySoon());
      void sendProblem(reply.headers(COMMON_HEADERS), problem);
    },
    clientErrorHandler: (error, socket) => {
      const code = respondToUnreadable(error, socket, COMMON_HEADERS);
      if (code !== null) metrics.refused.inc({ code });
    },
  }).withTypeProvider<ZodTypeProvider>();
}

/** The application, as the routes use it. */
export type App = ReturnType<typeof createBareApp>;

/** Creates the application. The caller awaits `ready()` and then calls `listen()`. */
export async function createApp({ context, guard, consoleFiles = [] }: AppOptions): Promise<App> {
  const app = createBareApp(context.metrics);
  app.server.maxConnections = GATEWAY_BOUNDS.connectionsMax;
  closeQueuedResponses(app.server);
  app.server.on('checkExpectation', (request: IncomingMessage, reply: ServerResponse) =>
    context.metrics.refused.inc({ code: rejectExpectation(request, reply, COMMON_HEADERS) }),
  );
  app.setValidatorCompiler(strictValidation);
  app.setSerializerCompiler(() => (data) => JSON.stringify(data));
  app.decorateRequest('principal', null);
  app.decorateRequest('bearer', null);
  addBodyParsers(app, context.bodies);
  const methods = new MethodTable(app);
  // Before any other hook rejects a request: the WebSocket plugin must know the connection in order to close it.
  await prepareSockets(app, (socket) => void respondToUnreadable({ code: NO_UPGRADE }, socket, COMMON_HEADERS));
  authenticateRequests(app, context, guard, methods);
  handleErrors(app, context, methods);
  measureRequests(app, context);
  boundUnreadResponses(app, context);
  traceRequests(app, context.spans ?? null, context.now);
  await openApi(app);
  documentRoutes(app);
  sessionRoutes(app, context);
  approvalRoutes(app, context);
  commandRoutes(app, context);
  eventRoutes(app, context);
  socketRoutes(app, context);
  aguiRoutes(app, context);
  readRoutes(app, context);
  startOptionRoutes(app, context);
  tokenRoutes(app);
  serviceRoutes(app, context);
  consoleRoutes(app, consoleFiles);
  return app;
}

function authenticateRequests(app: App, context: GatewayContext, guard: RequestGuard, methods: MethodTable): void {
  const { refusedBurst, refusedPerSecond, ratesRemembered } = GATEWAY_BOUNDS;
  const failedAuthentications = new RequestRates(refusedBurst, refusedPerSecond, ratesRemembered, context.now);

  const authorizeRequest = async (request: FastifyRequest): Promise<void> => {
    const { scope } = request.routeOptions.config;
    // Unknown routes and public routes.
    if (scope === undefined || scope === null) return;
    const token = bearerOf(request.headers);
    const principal = token === null ? null : await context.authenticator.authenticate(token);
    if (principal === null) {
      const wait = failedAuthentications.take(request.ip);
      if (wait > 0) throw rateLimitedProblem(wait);
      throw token === null
        ? unauthorizedProblem('send the header authorization: Bearer TOKEN; a token in the address does not count', '')
        : unauthorizedProblem('the token is unknown, expired or invalid', ', error="invalid_token"');
    }
    countRequest(context, principal);
    if (scope !== 'any' && !isAllowed(principal, scope)) {
      throw new Problem('scope_missing', `this needs the scope ${scope}; the token has ${named(principal.scopes)}`, {
        headers: { 'www-authenticate': `Bearer realm="coxswain", error="insufficient_scope", scope="${scope}"` },
      });
    }
    request.principal = principal;
    request.bearer = token;
  };

  app.addHook('onRequest', async (request, reply) => {
    reply.headers(COMMON_HEADERS);
    rejectRepeatedHeaders(request.raw.rawHeaders);
    // Probes use the machine's IP address, which the Host check may reject. Their responses contain only the status
    // and versions.
    if (!PROBES.has(request.routeOptions.url ?? '')) {
      guard.checkHost(request.headers);
      // Following a link to the page is allowed: the page contains no data.
      const isPageNavigation = request.routeOptions.config.page === true && isNavigation(request.headers);
      const allowedOrigin = isPageNavigation ? null : guard.checkOrigin(request.headers);
      if (allowedOrigin !== null) reply.headers(corsHeaders(allowedOrigin));
      if (request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined)
        return reply.code(204).headers(PREFLIGHT_HEADERS).send();
    }
    if (context.stopping.aborted)
      throw new Problem('gateway_stopping', 'this gateway is shutting down', {
        headers: { 'retry-after': '1', connection: 'close' },
      });
    // Before the body is read: the route does not exist.
    if (request.is404) throw routeProblem(request, methods);
    await authorizeRequest(request);
    if (request.ws && !isSocketRoute(request))
      throw new Problem(
        'request_unreadable',
        `${request.routeOptions.url} is not a WebSocket endpoint; use /ws or /inspect of a session`,
      );
  });
}

/**
 * Whether the request is for a WebSocket route. An unknown route counts as one, because it is reported as not found.
 */
function isSocketRoute({ routeOptions: { url } }: FastifyRequest): boolean {
  return url === undefined || SOCKET_ROUTES.has(url);
}

const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

/** Headers of all responses: no use by other sites, no caching, no content sniffing. */
const COMMON_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
} as const;

function corsHeaders(allowedOrigin: string): Record<string, string> {
  return {
    'access-control-allow-origin': allowedOrigin,
    'access-control-expose-headers': 'retry-after, www-authenticate, location',
    'cross-origin-resource-policy': 'cross-origin',
    vary: 'origin',
  };
}

const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'GET, POST, PUT, DELETE',
  'access-control-allow-headers': 'authorization, content-type, idempotency-key, last-event-id, traceparent',
  'access-control-max-age': '600',
} as const;

function unauthorizedProblem(message: string, more: string): Problem {
  return new Problem('unauthorized', message, { headers: { 'www-authenticate': `Bearer realm="coxswain"${more}` } });
}

function named(scopes: ReadonlySet<string>): string {
  return scopes.size === 0 ? 'none' : [...scopes].join(', ');
}

function handleErrors(app: App, { log, metrics }: GatewayContext, methods: MethodTable): void {
  app.setErrorHandler((error, request, reply) => {
    // If the client closes the connection within a body, the stream fails with this error.
    const problem = request.raw.errored === error ? requestClosedProblem() : problemFrom(error);
    request.problem = problem;
    // A session host of another release may reject with a code that this one does not know.
    metrics.refused.inc({ code: isErrorCode(problem.code) ? problem.code : 'other' });
    if (problem.code === 'request_closed')
      log.debug(
        { method: request.method, url: request.routeOptions.url },
        'the client closed the request before the response',
      );
    // Only errors of the gateway are logged. Errors of the request are reported to the client.
    if (problem.status === 500)
      log.error({ error, method: request.method, url: request.routeOptions.url }, 'a request failed');
    return sendProblem(reply, problem);
  });
  app.setNotFoundHandler((request) => {
    throw routeProblem(request, methods);
  });
}

/** The problem of an unknown path (404), or of a method that the path does not support (405). */
function routeProblem({ url, method }: FastifyRequest, methods: MethodTable): Problem {
  const path = url.split('?', 1)[0] ?? '';
  const allowed = methods.of(path);
  if (allowed.length > 0)
    return new Problem('method_not_allowed', `${method} is not supported here; use ${allowed.join(', ')}`, {
      headers: { allow: allowed.join(', ') },
    });
  return (
    unknownVerbProblem(path) ??
    new Problem('route_not_found', `there is no route ${cutText(path, 256)}; see /openapi.json`)
  );
}

/** A problem for a misspelt verb at the end of a session's path, with the nearest verb. */
function unknownVerbProblem(path: string): Problem | null {
  const named = /^\/v1\/sessions\/[^/]+\/([a-z_-]{1,64})$/i.exec(path)?.[1];
  const nearest = named === undefined ? null : nearestWord(named, POST_SEGMENTS);
  if (named === undefined || nearest === null) return null;
  return new Problem('unknown_command', `there is no command ${JSON.stringify(named)}; the nearest is "${nearest}"`, {
    field: 'verb',
  });
}

function boundUnreadResponses(app: App, { unread }: GatewayContext): void {
  app.addHook('onSend', async (request, { raw }, payload) => {
    const { method, routeOptions } = request;
    // Public routes send bytes that all their responses share. A command has been sent: its response is small.
    if (method !== 'GET' || !routeOptions.config.scope) return payload;
    // Streams are read at the client's speed.
    if (typeof payload !== 'string' && !Buffer.isBuffer(payload)) return payload;
    if (Buffer.byteLength(payload) < GATEWAY_BOUNDS.unreadFromBytes) return payload;
    const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload;
    unread.add(raw, bytes.length, principalOf(request));
    return bytes;
  });
}

function measureRequests(app: App, { metrics }: GatewayContext): void {
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'none';
    const { method } = request;
    metrics.requests.inc({ route, method, status: String(reply.statusCode) });
    metrics.seconds.observe({ route, method }, reply.elapsedTime / 1_000);
  });
}
