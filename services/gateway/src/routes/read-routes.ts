/** Reads of whole sessions: the tree of child sessions, the statechart, the export. */
import { Readable } from 'node:stream';
import { readTree } from '@coxswain/client';
import { StateValue } from '@coxswain/protocol';
import { turnChart } from '@coxswain/session';
import type { FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import type { App } from '../app/mod.ts';
import {
  abortOnDisconnect,
  clientFor,
  GATEWAY_BOUNDS,
  type GatewayContext,
  principalOf,
  sessionNotFoundProblem,
} from '../context/mod.ts';
import { NoQuery, OfSession, PROBLEMS } from '../http/mod.ts';
import { sessionOf } from './session-routes.ts';

const Tree = z.strictObject({
  parent: z.strictObject({ session: z.string(), root: z.string() }).nullable(),
  top: z.looseObject({ session_id: z.string(), children: z.array(z.unknown()) }),
  left_out: z
    .number()
    .int()
    .nonnegative()
    .meta({ description: 'Number of sessions beyond the limit of the response.' }),
});

const ChartNode = z.looseObject({
  path: z.string().meta({ description: 'Path of a state, with dots.' }),
  tags: z.array(z.string()),
  initial: z.string().nullable(),
  transitions: z.array(
    z.strictObject({ event: z.string(), guard: z.string().nullable(), target: z.string().nullable() }),
  ),
  states: z.array(z.unknown()),
});
const Chart = z.strictObject({
  machine: z.strictObject({ id: z.string(), version: z.string(), root: ChartNode }),
  active: StateValue,
  n: z.number().int().positive().meta({ description: 'The record after which the state is active.' }),
});

const ExportQuery = z.strictObject({
  records_only: z
    .enum(['true', 'false'])
    .default('false')
    .meta({ description: 'Omits large fields, which are stored separately.' }),
});

/** Adds the routes. */
export function readRoutes(app: App, context: GatewayContext): void {
  app.get(
    '/v1/sessions/:session_id/tree',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'tree',
        summary: 'Returns the session and its child sessions as a tree.',
        tags: ['sessions'],
        params: OfSession,
        querystring: NoQuery,
        response: { 200: Tree, ...PROBLEMS },
      },
    },
    async (request: FastifyRequest, reply: FastifyReply) => {
      const session = sessionOf(context, request);
      const principal = principalOf(request);
      const client = clientFor(context, principal);
      await context.known.expect(session);
      const atOnce = GATEWAY_BOUNDS.journalReadAhead;
      const read = () => readTree((id) => client.session(id).journal({ atOnce }), session.id);
      const tree = await context.expensiveReads.run(principal, read, abortOnDisconnect(reply));
      return reply.send(tree);
    },
  );

  app.get(
    '/v1/sessions/:session_id/statechart',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'statechart',
        summary: 'Returns the state machine and the state of the session.',
        tags: ['sessions'],
        params: OfSession,
        querystring: NoQuery,
        response: { 200: Chart, ...PROBLEMS },
      },
    },
    async (request: FastifyRequest, reply: FastifyReply) => {
      const session = sessionOf(context, request);
      const read = () => session.newest();
      const newest = await context.stateReads.run(principalOf(request), read, abortOnDisconnect(reply));
      if (newest === null) throw sessionNotFoundProblem(session.id);
      return reply.send({ machine: turnChart(), active: newest.state, n: newest.n });
    },
  );

  app.get(
    '/v1/sessions/:session_id/export',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'export',
        summary: 'Returns the journal as JSON lines for cox session import and cox session replay.',
        description:
          `A third concurrent export with the same token waits up to ${GATEWAY_BOUNDS.readWaitsMs / 1_000} seconds for one of the others. An export that takes over an hour, or ` +
          'whose client stops reading for 30 seconds, is cut off without its closing line.',
        tags: ['sessions'],
        params: OfSession,
        querystring: ExportQuery,
        response: {
          200: {
            description: 'One JSON document per line. The last one is the closing line.',
            content: { 'application/x-ndjson': { schema: z.string() } },
          },
          ...PROBLEMS,
        },
      },
    },
    async (request: FastifyRequest, reply: FastifyReply) => {
      const session = sessionOf(context, request);
      const { records_only } = request.query as z.infer<typeof ExportQuery>;
      await context.known.expect(session);
      const release = await context.exports.acquire(principalOf(request), abortOnDisconnect(reply));
      // Lines are read at the client's speed. The timeouts below end a connection that stops reading, or reads slowly.
      const lines = Readable.from(withBreaks(session.export({ recordsOnly: records_only === 'true' })), {
        objectMode: false,
        highWaterMark: 64 * 1024,
      });
      const timeout = setTimeout(() => reply.raw.destroy(), GATEWAY_BOUNDS.exportMaxMs);
      timeout.unref();
      lines.once('close', () => {
        clearTimeout(timeout);
        release();
      });
      reply.raw.setTimeout(context.times.stallMs, () => reply.raw.destroy());
      reply.type('application/x-ndjson; charset=utf-8');
      reply.header('content-disposition', `attachment; filename="${session.id}.jsonl"`);
      return reply.send(lines);
    },
  );
}

const BREAK = Buffer.from('\n');

async function* withBreaks(lines: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void, undefined> {
  for await (const line of lines) yield Buffer.concat([line, BREAK]);
}
