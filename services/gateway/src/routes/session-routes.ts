/** Sessions: start, fork, list, look at one, what waits in it. */
import { type BodyInput, type BusSession, newSessionId, type Session } from '@coxswain/client';
import { ForkChanges, SessionId, SessionStatus } from '@coxswain/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { expectMayAllow } from '../auth/verb-scopes.ts';
import type { App } from '../create-app.ts';
import { clientFor, expectBus, type GatewayContext, principalOf } from '../gateway-context.ts';
import { refuseOtherStart } from '../idempotency.ts';
import { Problem, problemFrom, whileAwaited } from '../problem.ts';
import {
  keyedIds,
  objectBody,
  refuseUnknown,
  sendOptions,
  storedCommand,
  told,
  whileListened,
} from '../send-command.ts';
import { traceparentOf } from '../trace-requests.ts';
import { ListQuery, SessionsPage } from './list-schemas.ts';
import { bodyOf, IdempotencyHeader, NoQuery, OfSession, PROBLEMS, StoredCommand, Waiting } from './route-schemas.ts';

const NEW_ID = {
  type: 'string',
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  description: 'The new session’s id. Default: a random one.',
};
const ForkBody = z.strictObject({
  at: z
    .number()
    .int()
    .positive()
    .optional()
    .meta({ description: 'The record up to which the past is shared. Default: the newest.' }),
  changes: ForkChanges.optional(),
  session_id: SessionId.optional().meta({ description: 'The fork’s id. Default: a random one.' }),
  id: z.string().optional().meta({ description: 'The command’s id.' }),
});
const Forked = z.strictObject({
  ...StoredCommand.shape,
  n: z.number().int().meta({ description: 'Where the fork begins.' }),
});

/** Adds them. */
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
        summary: 'Lists sessions, the one that was written to last first.',
        tags: ['sessions'],
        querystring: ListQuery,
        response: { 200: SessionsPage, ...PROBLEMS },
      },
    },
    (request, reply) => {
      const { details, ...query } = request.query;
      const client = clientFor(context, principalOf(request));
      const read = () => client.listSessions({ ...query, details: details === 'true' });
      return context.expensiveReads.run(read, whileAwaited(reply));
    },
  );

  app.get(
    '/v1/sessions/:session_id',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'getSession',
        summary: 'What a session is doing, after its newest record.',
        tags: ['sessions'],
        params: OfSession,
        querystring: NoQuery,
        response: { 200: SessionStatus, ...PROBLEMS },
      },
    },
    (request) => statusOf(context, sessionOf(context, request)),
  );

  app.get(
    '/v1/sessions/:session_id/pending',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'listPending',
        summary: 'What the session has accepted and not delivered yet, in order.',
        tags: ['pending'],
        params: OfSession,
        querystring: NoQuery,
        response: { 200: z.strictObject({ pending: SessionStatus.shape.pending }), ...PROBLEMS },
      },
    },
    async (request) => ({ pending: (await statusOf(context, sessionOf(context, request))).pending }),
  );

  app.post(
    '/v1/sessions/:session_id/fork',
    {
      config: { scope: 'run' },
      schema: {
        operationId: 'fork',
        summary: 'Starts a new session with this one’s past up to a record.',
        tags: ['sessions'],
        params: OfSession,
        querystring: Waiting,
        headers: IdempotencyHeader,
        body: ForkBody.meta({ description: 'Where it begins, and what is to be otherwise.' }),
        response: { 202: Forked, ...PROBLEMS },
      },
      // What comes as plain text, or names who acts, is refused before the schema is asked.
      preValidation: async (request) => void objectBody(request, null),
    },
    async (request, reply) => {
      const principal = principalOf(request);
      const origin = sessionOf(context, request);
      const { at, changes, session_id, id } = request.body;
      expectMayAllow(principal, { fork: { session: origin.id, n: at ?? 1, changes } }, asInFork);
      const ids = keyedIds(request, principal, { at, changes, session_id, id });
      await context.known.expect(origin);
      if (ids && session_id === undefined)
        await refuseOtherStart(clientFor(context, principal).session(ids.sessionId), id ?? ids.startId);
      const options = sendOptions('start', {
        principal,
        id: id ?? ids?.startId,
        waiting: request.query,
        signal: whileListened(context, reply),
        traceparent: traceparentOf(request),
      });
      // A start is not delivered later: that was refused.
      const wait = options.wait === 'delivered' ? 'accepted' : options.wait;
      let forked: { readonly session: Session; readonly n: number } | undefined;
      const sent = await told(context, 'start', async () => {
        const made = await origin.fork({ ...options, wait, at, changes, sessionId: session_id ?? ids?.sessionId });
        if (wait === 'stored') await context.known.expectStillThere(origin);
        forked = made;
        return made.sent;
      }).catch(asWritten);
      if (!forked) throw new Error('a fork was sent that was not made');
      context.known.note(forked.session);
      reply.code(202).header('location', `/v1/sessions/${forked.session.id}`);
      return { ...storedCommand(forked.session, sent), n: forked.n };
    },
  );
}

/** A fork is sent as a start, whose fields are not those that the request has. */
function asWritten(error: unknown): never {
  const problem = problemFrom(error);
  const { field } = problem.more;
  if (!field?.startsWith('fork.')) throw error;
  const written = asInFork(field);
  throw new Problem(problem.code, problem.message.replace(`${field}:`, `${written}:`), {
    ...problem.more,
    field: written,
  });
}

function asInFork(field: string): string {
  return field === 'fork.n' ? 'at' : field.slice('fork.'.length);
}

/** The session that an address names. */
export function sessionOf(context: GatewayContext, request: FastifyRequest): BusSession {
  const { session_id } = request.params as { readonly session_id: string };
  return clientFor(context, principalOf(request)).session(session_id);
}

/** Asked of a host. Where none answers, whether there is such a session is told all the same. */
async function statusOf(context: GatewayContext, session: Session): Promise<SessionStatus> {
  try {
    return await session.state();
  } catch (error) {
    const { code } = error as { readonly code?: unknown };
    if (code === 'no_host') {
      // Of a bus that is away nobody hears of hosts.
      await expectBus(context);
      await context.known.expect(session);
    }
    if (code === 'session_not_found' && context.known.has(session))
      throw new Problem(
        'session_not_found',
        `there is no session ${session.id} yet: its start is stored and not taken; ask again, or start it with ?wait=accepted`,
        { sessionId: session.id },
      );
    throw error;
  }
}

async function start(context: GatewayContext, request: FastifyRequest, reply: FastifyReply): Promise<StoredCommand> {
  const principal = principalOf(request);
  const client = clientFor(context, principal);
  const { session_id, ...body } = objectBody(request, null);
  refuseUnknown(body, 'start', [], ['session_id']);
  expectMayAllow(principal, body);
  const named = session_id === undefined ? undefined : SessionId.safeParse(session_id);
  if (named?.success === false)
    throw new Problem('invalid_id', 'session_id: must be 1 to 64 characters of A-Z a-z 0-9 _ -', {
      field: 'session_id',
    });
  const ids = keyedIds(request, principal, { session_id, ...body });
  const sessionId = named?.data ?? ids?.sessionId ?? newSessionId();
  // One that the request names may be anybody's: the session itself says so.
  const id = (body as { readonly id?: string }).id ?? ids?.startId;
  if (ids && named === undefined) await refuseOtherStart(client.session(sessionId), id);
  const waiting = request.query as Waiting;
  const options = sendOptions('start', {
    principal,
    id,
    waiting,
    signal: whileListened(context, reply),
    traceparent: traceparentOf(request),
  });
  const session = client.session(sessionId);
  const sent = await told(context, 'start', () => session.send('start', body as BodyInput<'start'>, options));
  context.known.note(session);
  reply.code(202).header('location', `/v1/sessions/${session.id}`);
  return storedCommand(session, sent);
}
