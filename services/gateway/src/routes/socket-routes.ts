/** WebSockets: one for records, deltas and commands of a session, and one for inspectors of its state machine. */
import type { Duplex } from 'node:stream';
import websocket from '@fastify/websocket';
import type { FastifyRequest } from 'fastify';
import type { App } from '../app/mod.ts';
import { SOCKET_PROTOCOL } from '../auth/mod.ts';
import { GATEWAY_BOUNDS, type GatewayContext, Problem } from '../context/mod.ts';
import { OfSession, PROBLEMS } from '../http/mod.ts';
import { InspectQuery, SocketQuery, serveInspector, serveSocket } from '../socket/mod.ts';
import { sessionOf } from './session-routes.ts';

const SOCKET = '/v1/sessions/:session_id/ws';
const INSPECT = '/v1/sessions/:session_id/inspect';

/** The paths of WebSocket routes. */
export const SOCKET_ROUTES: ReadonlySet<string> = new Set([SOCKET, INSPECT]);

/**
 * Registers the WebSocket server. It must be called before routes are added.
 * @param rejectUpgrade closes the socket of an upgrade to another protocol.
 */
export async function prepareSockets(app: App, rejectUpgrade: (socket: Duplex) => void): Promise<void> {
  await app.register(websocket, {
    options: {
      maxPayload: GATEWAY_BOUNDS.bodyMaxBytes,
      maxFragments: GATEWAY_BOUNDS.socketFragmentsMax,
      maxBufferedChunks: GATEWAY_BOUNDS.socketChunksMax,
      perMessageDeflate: false,
      // The offered subprotocol with the token is not selected.
      handleProtocols: (offered: ReadonlySet<string>) => (offered.has(SOCKET_PROTOCOL) ? SOCKET_PROTOCOL : false),
    },
    // The gateway closes the WebSockets itself before it closes the app.
    preClose: (done: () => void) => done(),
  });
  // The WebSocket server handles every upgrade, including upgrades to HTTP/2. Pass only WebSocket upgrades to it.
  const [takeSocket] = app.server.listeners('upgrade');
  if (!takeSocket) throw new Error('the app has no WebSocket server');
  app.server.removeAllListeners('upgrade');
  app.server.on('upgrade', (request, socket, head) => {
    if (request.headers.upgrade?.toLowerCase() === 'websocket') takeSocket.call(app.server, request, socket, head);
    else rejectUpgrade(socket);
  });
}

/** Adds the routes. */
export function socketRoutes(app: App, context: GatewayContext): void {
  app.route({
    method: 'GET',
    url: SOCKET,
    config: { scope: 'read' },
    schema: {
      operationId: 'socket',
      summary: 'WebSocket: receives records and deltas, sends commands.',
      description:
        'Messages are JSON. The gateway sends `{type: "record", n, record}`, `{type: "delta", delta}`, `{type: "sent", ref, …}` and ' +
        '`{type: "problem", ref?, problem}`. It accepts `{type: "command", ref?, verb, body?, wait?, timeout_ms?}`. A page offers the ' +
        `protocols \`${SOCKET_PROTOCOL}\` and \`bearer.TOKEN\`, because it cannot send headers.`,
      tags: ['events'],
      params: OfSession,
      querystring: SocketQuery,
      response: PROBLEMS,
    },
    preHandler: createSessionCheck(context),
    handler: rejectWithoutUpgrade,
    wsHandler: (socket, request) => {
      void serveSocket(context, sessionOf(context, request), request, socket, request.query as SocketQuery);
    },
  });
  app.route({
    method: 'GET',
    url: INSPECT,
    config: { scope: 'read' },
    schema: {
      operationId: 'inspect',
      summary: 'WebSocket: the state machine of the session, in the protocol of XState’s inspector.',
      description:
        'Messages are JSON, those of the library `@statelyai/inspect`: `@xstate.actor` with the machine’s definition and its first ' +
        'snapshot, then for each event of the journal `@xstate.event` and `@xstate.snapshot`, first past, then live ones. ' +
        '`coxswain: {n, index}` is the position in the journal. The gateway ignores incoming messages. A token is offered as for ' +
        'the other WebSocket, or as the password of Basic credentials. The close reason is an error code.',
      tags: ['events'],
      params: OfSession,
      querystring: InspectQuery,
      response: PROBLEMS,
    },
    preHandler: createSessionCheck(context),
    handler: rejectWithoutUpgrade,
    wsHandler: (socket, request) => {
      void serveInspector(context, sessionOf(context, request), request, socket, request.query as InspectQuery);
    },
  });
}

/** Checks the session before the upgrade, so that an error is an HTTP response. */
function createSessionCheck(context: GatewayContext) {
  return async (request: FastifyRequest): Promise<void> => {
    if (request.ws) await context.known.expect(sessionOf(context, request));
  };
}

async function rejectWithoutUpgrade(): Promise<never> {
  throw new Problem('upgrade_required', 'this route is a WebSocket endpoint', {
    headers: { upgrade: 'websocket', connection: 'upgrade' },
  });
}
