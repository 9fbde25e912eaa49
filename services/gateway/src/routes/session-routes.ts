/** Routes of sessions: start, fork, list, state, queued messages. */
import {
  type BodyInput,
  type BusSession,
  newSessionId,
  ReceiptTimeoutError,
  SessionNotFoundError,
  sessionIdOfMessage,
  type WireSentCommand,
} from '@coxswain/client';
import { ForkChanges, natsBodyOf, SessionId, SessionStatus } from '@coxswain/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import type { App } from '../app/mod.ts';
import { expectMayAllow } from '../auth/mod.ts';
import {
  abortOnDisconnectOrStop,
  idempotentIds,
  objectBody,
  recordedForkPoint,
  rejectOtherFields,
  rejectOtherStart,
  rejectReusedId,
  rejectUnknownFields,
  sendCounted,
  sendOptions,
  toStoredCommand,
} from '../commands/mod.ts';
import {
  abortOnDisconnect,
  clientFor,
  expectBus,
  GATEWAY_BOUNDS,
  type GatewayContext,
  Problem,
  principalOf,
  withRenamedField,
} from '../context/mod.ts';
import {
  bodyOf,
  IdempotencyHeader,
  NoQuery,
  OfSession,
  OWN_ID,
  PROBLEMS,
  StoredCommand,
  traceparentOf,
  Waiting,
} from '../http/mod.ts';
import { ListQuery, SessionsPage } from './list-schemas.ts';

const NEW_ID = {
  type: 'string',
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  description: 'Id of the new session. Default: derived from the message id or the idempotency key, otherwise random.',
};
const ForkBody = z.strictObject({
  at: z.number().int().positive().optional().meta({ description: 'Last shared record. Default: the newest.' }),
  changes: ForkChanges.optional(),
  session_id: SessionId.optional().meta({ description: 'Id of the fork. Default: random.' }),
  command_id: z.string().optional().meta({ description: OWN_ID }),
});
const FORK_MEMBERS = Object.keys(ForkBody.shape);
const Forked = z.strictObject({
  ...StoredCommand.shape,
  n: z.number().int().meta({ description: 'Fork point.' }),
});

/** Adds the routes. */
export function sessionRoutes(app: App, context: GatewayContext): void {
  app.post(
    '/v1/sessions',
    {
      config: { scope: 'run' },
      schema: {
        operationId: 'start',
        summary: 'Starts a session.',
        tags: ['sessions'],
        querystring: Waiting,
        headers: IdempotencyHeader,
        body: bodyOf('start', [], { session_id: NEW_ID }),
        response: { 202: StoredCommand, ...PROBLEMS },
      },
    },
    (request: FastifyRequest, reply: FastifyReply) => start(context, request, reply),
  );

  app.get(
    '/v1/sessions',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'listSessions',
        summary: 'Lists sessions, the most recently changed first.',
        tags: ['sessions'],
        querystring: ListQuery,
        response: { 200: SessionsPage, ...PROBLEMS },
      },
    },
    (request, reply) => {
      const { details, ...query } = request.query;
      const client = clientFor(context, principalOf(request));
      const read = () => client.wire.listSessions({ ...query, details: details === 'true' });
      return context.expensiveReads.run(principalOf(request), read, abortOnDisconnect(reply));
    },
  );

  app.get(
    '/v1/sessions/:session_id',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'getSession',
        summary: 'Returns the current state of a session.',
        tags: ['sessions'],
        params: OfSession,
        querystring: NoQuery,
        response: { 200: SessionStatus, ...PROBLEMS },
      },
    },
    (request, reply) => statusOf(context, request, abortOnDisconnect(reply)),
  );

  app.get(
    '/v1/sessions/:session_id/pending',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'listPending',
        summary: 'Returns the queued messages of the session in delivery order.',
        tags: ['pending'],
        params: OfSession,
        querystring: NoQuery,
        response: { 200: z.strictObject({ pending: SessionStatus.shape.pending }), ...PROBLEMS },
      },
    },
    async (request, reply) => {
      const { pending } = await statusOf(context, request, abortOnDisconnect(reply));
      return { pending };
    },
  );

  app.post(
    '/v1/sessions/:session_id/fork',
    {
      config: { scope: 'run' },
      schema: {
        operationId: 'fork',
        summary: 'Forks the session: starts a new session with its history up to a record.',
        tags: ['sessions'],
        params: OfSession,
        querystring: Waiting,
        headers: IdempotencyHeader,
        body: ForkBody.meta({ description: 'Fork point and changes.' }),
        response: { 202: Forked, ...PROBLEMS },
      },
      // Plain text, `actor` and unknown fields are rejected here, as for commands, before the schema is checked.
      preValidation: async (request) => rejectOtherFields(objectBody(request, null), 'fork', FORK_MEMBERS),
    },
    async (request, reply) => {
      const principal = principalOf(request);
      const origin = sessionOf(context, request);
      const { at, changes, session_id, command_id } = request.body;
      expectMayAllow(principal, { fork: { session: origin.id, n: at ?? 1, changes } }, toForkField);
      const ids = idempotentIds(request, principal, { at, changes, session_id, command_id });
      await context.known.expect(origin);
      const client = clientFor(context, principal);
      const id = command_id ?? ids?.startId;
      if (ids && session_id === undefined) await rejectOtherStart(client.session(ids.sessionId), id);
      const n = at ?? (await origin.lastNumber());
      if (n === 0) throw new SessionNotFoundError(origin.id);
      const session = client.session(session_id ?? ids?.sessionId ?? newSessionId());
      const body = { fork: { session: origin.id, n, ...(changes === undefined ? {} : { changes }) } };
      const sent = await sendStart(context, request, reply, { session, body, id }).catch((error: unknown) => {
        throw withRenamedField(error, toForkField);
      });
      if (!sent.receipt) await context.known.expectNotDeleted(origin);
      // The origin may have further records since the first request.
      const isRepeated = sent.duplicate || sent.receipt?.duplicate === true;
      const first = isRepeated ? await recordedForkPoint(session, sent.commandId) : null;
      return { ...toStoredCommand(session, sent), n: first ?? n };
    },
  );
}

/** Maps a field of the start command to its name in a fork request, which has no prefix. */
function toForkField(field: string): string {
  if (field === 'fork.n') return 'at';
  return field.startsWith('fork.') ? field.slice('fork.'.length) : field;
}

/**
 * The session of a request's path.
 * @throws Problem `not_permitted` (403).
 */
export function sessionOf(context: GatewayContext, request: FastifyRequest): BusSession {
  const { session_id } = request.params as { readonly session_id: string };
  return clientFor(context, principalOf(request)).session(session_id);
}

/** Gets the status from a host. If no host responds, an unknown session is still reported as not found. */
async function statusOf(context: GatewayContext, request: FastifyRequest, signal: AbortSignal): Promise<SessionStatus> {
  const session = sessionOf(context, request);
  try {
    // Any state will do. It is queried again while the host has too many queries.
    const read = () => session.wire.stateAfter(0, { signal });
    return await context.stateReads.run(principalOf(request), read, signal);
  } catch (error) {
    const { code } = error as { readonly code?: unknown };
    if (code === 'no_host') {
      // If NATS does not respond, report that instead of missing hosts.
      await expectBus(context);
      await context.known.expect(session);
    }
    if (code === 'session_not_found' && context.known.has(session))
      throw new Problem(
        'session_not_found',
        `there is no session ${session.id} yet: its start is stored, and no host has accepted it yet; retry`,
        { sessionId: session.id },
      );
    throw error;
  }
}

async function start(context: GatewayContext, request: FastifyRequest, reply: FastifyReply): Promise<StoredCommand> {
  const principal = principalOf(request);
  const client = clientFor(context, principal);
  const { session_id, ...body } = objectBody(request, null);
  rejectUnknownFields(body, 'start', [], ['session_id']);
  expectMayAllow(principal, body);
  const named = session_id === undefined ? undefined : SessionId.safeParse(session_id);
  if (named?.success === false)
    throw new Problem('invalid_id', 'session_id: must be 1 to 64 characters of A-Z a-z 0-9 _ -', {
      field: 'session_id',
    });
  const ids = idempotentIds(request, principal, { session_id, ...body });
  const { message_id } = body;
  // Sending the command rejects an invalid message id.
  const ofMessage =
    named === undefined && typeof message_id === 'string' && message_id
      ? await sessionIdOfMessage(message_id)
      : undefined;
  const sessionId = named?.data ?? ofMessage ?? ids?.sessionId ?? newSessionId();
  // A session id that the request names, or that is derived from a message id, may belong to another start. The session
  // then rejects this one itself.
  const id = (body as { readonly command_id?: string }).command_id ?? ids?.startId;
  if (ids && sessionId === ids.sessionId) await rejectOtherStart(client.session(sessionId), id);
  const session = client.session(sessionId);
  const onNats = natsBodyOf(body);
  const sent = await sendStart(context, request, reply, { session, body: onNats, id });
  if (sent.duplicate && !sent.receipt?.duplicate && id !== undefined && id !== ids?.startId)
    await rejectReusedId(context.expensiveReads, session, { principal, commandId: id, verb: 'start', body: onNats });
  return toStoredCommand(session, sent);
}

/** A start that is ready to be sent. */
interface ReadyStart {
  readonly session: BusSession;
  /** The body of the command on NATS. */
  readonly body: object;
  readonly id: string | undefined;
}

/**
 * Sends a start and sets the status 202. Without `?wait=` it waits for the session to accept it, so that an invalid
 * start is rejected in the response. If no host responds in time, the start counts as stored: a host accepts it later.
 * @throws Problem; errors of sending the command.
 */
async function sendStart(
  context: GatewayContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { session, body, id }: ReadyStart,
): Promise<WireSentCommand> {
  const query = request.query as Waiting;
  const isBounded = query.wait === undefined;
  const options = sendOptions('start', {
    principal: principalOf(request),
    id,
    waiting: isBounded ? { wait: 'accepted', timeout_ms: GATEWAY_BOUNDS.startAcceptedWithinMs } : query,
    // The bounded wait ends before a stopping gateway ends its requests.
    signal: isBounded ? abortOnDisconnect(reply) : abortOnDisconnectOrStop(context, reply),
    traceparent: traceparentOf(request),
  });
  const sent = await sendCounted(context, 'start', async () => {
    try {
      return await session.wire.send('start', body as BodyInput<'start'>, options);
    } catch (error) {
      if (isBounded && error instanceof ReceiptTimeoutError && error.sent) return error.sent;
      throw error;
    }
  });
  context.known.remember(session);
  reply.code(202).header('location', `/v1/sessions/${session.id}`);
  return sent;
}
