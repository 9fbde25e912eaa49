/** Routes of a session's records: pages, and server-sent events that continue after a lost connection. */
import { Delta, JournalRecord } from '@coxswain/protocol';
import type { FastifyRequest } from 'fastify';
import * as z from 'zod';
import type { App } from '../app/mod.ts';
import { abortOnDisconnect, GATEWAY_BOUNDS, type GatewayContext, Problem, principalOf } from '../context/mod.ts';
import { serveEvents } from '../feed/mod.ts';
import { FIRST_RECORD_SCHEMA, FirstRecord, OfSession, PROBLEMS, wholeNumber } from '../http/mod.ts';
import { sessionOf } from './session-routes.ts';

const Query = z.strictObject({
  from: FirstRecord.meta({
    ...FIRST_RECORD_SCHEMA,
    description: 'Number of the first record, or `newest`. For server-sent events, `last-event-id` has precedence.',
  }),
  limit: wholeNumber(GATEWAY_BOUNDS.pageRecordsMax)
    .optional()
    .meta({
      description: `Records of a page (${GATEWAY_BOUNDS.pageRecordsDefault}).`,
    }),
  deltas: z.enum(['true', 'false']).optional().meta({
    description: 'Whether server-sent events contain deltas of streaming answers (true). Deltas have no id.',
  }),
});

const Page = z.strictObject({
  records: z.array(z.unknown().meta(schemaOf(JournalRecord))),
  next_from: z.number().int().positive().meta({ description: 'First record of the next page.' }),
  more: z.boolean().meta({ description: 'Whether the journal has more records at the moment.' }),
});

const Headers = z.looseObject({
  'last-event-id': z
    .string()
    .optional()
    .meta({ description: 'Number of the last received record. The stream continues after it. The record must exist.' }),
  accept: z
    .string()
    .optional()
    .meta({ description: '`text/event-stream` for server-sent events. Otherwise the response is a page.' }),
});

/** Adds the route. */
export function eventRoutes(app: App, context: GatewayContext): void {
  app.get(
    '/v1/sessions/:session_id/events',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'events',
        summary: 'Returns records of a session: a page, or a live stream.',
        description:
          'Server-sent events: `record` with the number of the record as its id, `delta` without an id, and at the end `problem` with a ' +
          'problem document. A client that reconnects with `last-event-id` receives every record exactly once. If the journal ends ' +
          'before that record, or before the one that precedes `from`, the stream ends with `record_not_there`.',
        tags: ['events'],
        params: OfSession,
        querystring: Query,
        headers: Headers,
        response: {
          200: {
            description: 'A page, or events.',
            content: {
              'application/json': { schema: Page },
              'text/event-stream': {
                schema: z.string().meta({
                  description: `Data is JSON: a record, or ${Object.keys(Delta.shape).length} members of a delta.`,
                }),
              },
            },
          },
          ...PROBLEMS,
        },
      },
    },
    async (request, reply) => {
      const session = sessionOf(context, request);
      const principal = principalOf(request);
      const { from, limit, deltas } = request.query;
      if (!accepts(request, 'text/event-stream')) {
        if (deltas !== undefined)
          throw invalidFieldProblem('deltas', 'requires server-sent events: accept text/event-stream');
        await context.known.expect(session);
        const signal = abortOnDisconnect(reply);
        if (from === 'newest')
          return newestPage(await context.stateReads.run(principal, () => session.newest(), signal));
        const recordsMax = limit ?? GATEWAY_BOUNDS.pageRecordsDefault;
        const request = { session, from, recordsMax, maxBytes: GATEWAY_BOUNDS.pageMaxBytes };
        const { records, more } = await context.pages.read(request, principal, signal);
        const next_from = (records.at(-1)?.n ?? from - 1) + 1;
        const json = records.map((item) => item.json).join(',');
        return reply
          .type('application/json; charset=utf-8')
          .send(`{"records":[${json}],"next_from":${next_from},"more":${more}}`);
      }
      if (limit !== undefined) throw invalidFieldProblem('limit', 'requires a page: accept application/json');
      await context.known.expect(session);
      const seen = lastSeen(request);
      await serveEvents(context, session, request, reply, {
        start: seen === null ? { field: 'from', from } : { field: 'last-event-id', seen },
        deltas: deltas !== 'false',
      });
      return reply;
    },
  );
}

function invalidFieldProblem(field: string, words: string): Problem {
  return new Problem('invalid_field', `${field}: ${words}`, { field });
}

/**
 * The last record before a reconnection; null if there is none. A browser sends the id of the last event; its URL is
 * still the first one.
 */
function lastSeen({ headers }: FastifyRequest): number | null {
  const seen = headers['last-event-id'];
  // Browsers send an empty value if the last event had no id.
  if (seen === undefined || seen === '') return null;
  if (typeof seen === 'string' && /^(0|[1-9]\d{0,14})$/.test(seen)) return Number(seen);
  throw invalidFieldProblem('last-event-id', 'must be the number of a record');
}

function accepts({ headers }: FastifyRequest, type: string): boolean {
  return (headers.accept ?? '').split(',').some((one) => one.split(';', 1)[0]?.trim().toLowerCase() === type);
}

function newestPage(record: JournalRecord | null) {
  return { records: record ? [record] : [], next_from: (record?.n ?? 0) + 1, more: false };
}

function schemaOf(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' });
  return rest as Record<string, unknown>;
}
