/** The HTTP face: who is let in, how what comes in is read, how trouble is told. Routes are in `routes/`. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { cutText, nearestWord } from '@coxswain/protocol';
import { RequestRates } from '@coxswain/session';
import Fastify, { type FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { bearerOf } from './auth/bearer.ts';
import { isAllowed } from './auth/principal.ts';
import type { ConsoleFile } from './console/console-files.ts';
import { consoleRoutes } from './console/console-routes.ts';
import { GATEWAY_BOUNDS } from './gateway-bounds.ts';
import { type GatewayContext, rateLimited, takeTurn } from './gateway-context.ts';
import type { GatewayMetrics } from './gateway-metrics.ts';
import { MethodTable } from './method-table.ts';
import { Problem, problemFrom, requestClosed, sendProblem } from './problem.ts';
import { readBodies } from './read-bodies.ts';
import { isVisit, type RequestGuard, refuseRepeatedHeaders } from './request-guard.ts';
import { aguiRoutes } from './routes/agui-routes.ts';
import { approvalRoutes } from './routes/approval-routes.ts';
import { AT_THE_END, commandRoutes } from './routes/command-routes.ts';
import { eventRoutes } from './routes/event-routes.ts';
import { documentRoutes, openApi } from './routes/open-api.ts';
import { readRoutes } from './routes/read-routes.ts';
import { serviceRoutes } from './routes/service-routes.ts';
import { sessionRoutes } from './routes/session-routes.ts';
import { prepareSockets, SOCKET_ROUTES, socketRoutes } from './routes/socket-routes.ts';
import { startOptionRoutes } from './routes/start-option-routes.ts';
import { tokenRoutes } from './routes/token-routes.ts';
import { strictValidation } from './strict-validation.ts';
import { traceRequests } from './trace-requests.ts';
import { answerUnreadable, NO_UPGRADE, refuseExpectation } from './unreadable-requests.ts';

/** How the app is made. */
export interface AppOptions {
  readonly context: GatewayContext;
  readonly guard: RequestGuard;
  /** The console's; none where it is not served. */
  readonly consoleFiles?: readonly ConsoleFile[] | undefined;
}

/** The app before its routes. */
function bareApp(metrics: GatewayMetrics) {
  return Fastify({
    bodyLimit: GATEWAY_BOUNDS.bodyMaxBytes,
    // Longer than any id: what is too long is told by its schema.
    routerOptions: { maxParamLength: 1_024 },
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    connectionTimeout: GATEWAY_BOUNDS.standstillMs,
    keepAliveTimeout: GATEWAY_BOUNDS.keepAliveMs,
    requestTimeout: GATEWAY_BOUNDS.requestTimeoutMs,
    http: {
      maxHeaderSize: GATEWAY_BOUNDS.headersMaxBytes,
      headersTimeout: GATEWAY_BOUNDS.headersTimeoutMs,
      // Told by the guard, in words.
      requireHostHeader: false,
    },
    // What a proxy says of who is behind it anybody could say.
    trustProxy: false,
    // What never becomes a request of a route is answered as everything else is.
    frameworkErrors: (error, { raw }, reply) => {
      const problem = problemFrom(error);
      metrics.refused.inc({ code: problem.code });
      // No hook is run for these, and of a connection that was to be a WebSocket the server has let go.
      if (raw.headers.upgrade !== undefined) reply.raw.once('finish', () => raw.socket.destroySoon());
      void sendProblem(reply.headers(ALWAYS), problem);
    },
    clientErrorHandler: (error, socket) => {
      const code = answerUnreadable(error, socket, ALWAYS);
      if (code !== null) metrics.refused.inc({ code });
    },
  }).withTypeProvider<ZodTypeProvider>();
}

/** The app, as routes take it. */
export type App = ReturnType<typeof bareApp>;

/** Makes the app. It is ready once `ready()` has resolved, and listens when it is told where. */
export async function createApp({ context, guard, consoleFiles = [] }: AppOptions): Promise<App> {
  const app = bareApp(context.metrics);
  app.server.maxConnections = GATEWAY_BOUNDS.connectionsMax;
  app.server.on('checkExpectation', (request: IncomingMessage, reply: ServerResponse) =>
    context.metrics.refused.inc({ code: refuseExpectation(request, reply, ALWAYS) }),
  );
  app.setValidatorCompiler(strictValidation);
  app.setSerializerCompiler(() => (data) => JSON.stringify(data));
  app.decorateRequest('principal', null);
  app.decorateRequest('bearer', null);
  readBodies(app);
  const methods = new MethodTable(app);
  // Before anybody is refused: it has to know of the connection that is to be closed then.
  await prepareSockets(app, (socket) => void answerUnreadable({ code: NO_UPGRADE }, socket, ALWAYS));
  letIn(app, context, guard, methods);
  tellTrouble(app, context, methods);
  measure(app, context);
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

function letIn(app: App, context: GatewayContext, guard: RequestGuard, methods: MethodTable): void {
  const { refusedBurst, refusedPerSecond, ratesRemembered } = GATEWAY_BOUNDS;
  const refusals = new RequestRates(refusedBurst, refusedPerSecond, ratesRemembered, context.now);

  const bearerLetIn = async (request: FastifyRequest): Promise<void> => {
    const { scope } = request.routeOptions.config;
    // What is not there, and what is open to all.
    if (scope === undefined || scope === null) return;
    const token = bearerOf(request.headers);
    const principal = token === null ? null : await context.authenticator.authenticate(token);
    if (principal === null) {
      const wait = refusals.take(request.ip);
      if (wait > 0) throw rateLimited(wait);
      throw token === null
        ? unauthorized('the request has no token: send authorization: Bearer TOKEN', '')
        : unauthorized('the token is unknown, expired or invalid', ', error="invalid_token"');
    }
    takeTurn(context, principal);
    if (scope !== 'any' && !isAllowed(principal, scope)) {
      throw new Problem('scope_missing', `this needs the scope ${scope}; the token has ${named(principal.scopes)}`, {
        headers: { 'www-authenticate': `Bearer realm="coxswain", error="insufficient_scope", scope="${scope}"` },
      });
    }
    request.principal = principal;
    request.bearer = token;
  };

  app.addHook('onRequest', async (request, reply) => {
    reply.headers(ALWAYS);
    refuseRepeatedHeaders(request.raw.rawHeaders);
    // Probes ask by the address of the machine; they are told nothing but that it is there.
    if (!PROBES.has(request.routeOptions.url ?? '')) {
      guard.checkHost(request.headers);
      // Whoever follows a link to the page gets the page, which has nothing of anybody's in it.
      const visits = request.routeOptions.config.page === true && isVisit(request.headers);
      const site = visits ? null : guard.checkOrigin(request.headers);
      if (site !== null) reply.headers(forSite(site));
      if (request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined)
        return reply.code(204).headers(PREFLIGHT).send();
    }
    if (context.stopping.aborted)
      throw new Problem('gateway_stopping', 'this gateway is shutting down', {
        headers: { 'retry-after': '1', connection: 'close' },
      });
    // Told before anything is asked of a body that nobody takes.
    if (request.is404) throw notThere(request, methods);
    await bearerLetIn(request);
    if (request.ws && !isSocketRoute(request))
      throw new Problem(
        'request_unreadable',
        `${request.routeOptions.url} is not a WebSocket endpoint; use /ws or /inspect of a session`,
      );
  });
}

/** What is not there is told as to everybody else. */
function isSocketRoute({ routeOptions: { url } }: FastifyRequest): boolean {
  return url === undefined || SOCKET_ROUTES.has(url);
}

const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

/** Nothing that is answered is for other pages, for caches or for guesses. */
const ALWAYS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
} as const;

function forSite(site: string): Record<string, string> {
  return {
    'access-control-allow-origin': site,
    'access-control-expose-headers': 'retry-after, www-authenticate, location',
    'cross-origin-resource-policy': 'cross-origin',
    vary: 'origin',
  };
}

const PREFLIGHT = {
  'access-control-allow-methods': 'GET, POST, PUT, DELETE',
  'access-control-allow-headers': 'authorization, content-type, idempotency-key, last-event-id, traceparent',
  'access-control-max-age': '600',
} as const;

function unauthorized(message: string, more: string): Problem {
  return new Problem('unauthorized', message, { headers: { 'www-authenticate': `Bearer realm="coxswain"${more}` } });
}

function named(scopes: ReadonlySet<string>): string {
  return scopes.size === 0 ? 'none' : [...scopes].join(', ');
}

function tellTrouble(app: App, { log, metrics }: GatewayContext, methods: MethodTable): void {
  app.setErrorHandler((error, request, reply) => {
    // Of a body that is cut off by its sender's end the stream itself tells.
    const problem = request.raw.errored === error ? requestClosed() : problemFrom(error);
    request.problem = problem;
    metrics.refused.inc({ code: problem.code });
    if (problem.code === 'request_closed')
      log.debug(
        { method: request.method, url: request.routeOptions.url },
        'the client closed the request before the response',
      );
    // What is ours to mend; what is wrong with a request is told to whoever has sent it.
    if (problem.status === 500)
      log.error({ error, method: request.method, url: request.routeOptions.url }, 'a request failed');
    return sendProblem(reply, problem);
  });
  app.setNotFoundHandler((request) => {
    throw notThere(request, methods);
  });
}

/** What is wrong with an address, or with its method. */
function notThere({ url, method }: FastifyRequest, methods: MethodTable): Problem {
  const path = url.split('?', 1)[0] ?? '';
  const allowed = methods.of(path);
  if (allowed.length > 0)
    return new Problem('method_not_allowed', `${method} is not supported here; use ${allowed.join(', ')}`, {
      headers: { allow: allowed.join(', ') },
    });
  return (
    unknownVerb(path) ?? new Problem('route_not_found', `there is no route ${cutText(path, 256)}; see /openapi.json`)
  );
}

/** What stands at the end of a session's address is a verb, as it is at the end of a subject. */
function unknownVerb(path: string): Problem | null {
  const named = /^\/v1\/sessions\/[^/]+\/([a-z_-]{1,64})$/i.exec(path)?.[1];
  const meant = named === undefined ? null : nearestWord(named, AT_THE_END);
  if (named === undefined || meant === null) return null;
  return new Problem('unknown_command', `there is no command ${JSON.stringify(named)}; the nearest is "${meant}"`, {
    field: 'verb',
  });
}

function measure(app: App, { metrics }: GatewayContext): void {
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'none';
    const { method } = request;
    metrics.requests.inc({ route, method, status: String(reply.statusCode) });
    metrics.seconds.observe({ route, method }, reply.elapsedTime / 1_000);
  });
}
