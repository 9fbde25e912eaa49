/** Serves a session over one WebSocket. */
import type { BusSession } from '@coxswain/client';
import type { FastifyRequest } from 'fastify';
import type { WebSocket } from 'ws';
import * as z from 'zod';
import { type GatewayContext, principalOf, problemFrom } from '../context/mod.ts';
import { createPageReader, expectStart, type FeedItem, watchFeed } from '../feed/mod.ts';
import { FIRST_RECORD_SCHEMA, FirstRecord } from '../http/mod.ts';
import { MonitoredSocket } from './monitored-socket.ts';
import { SocketCommands } from './socket-commands.ts';

/** The query of a WebSocket. */
export const SocketQuery = z.strictObject({
  from: FirstRecord.meta({ ...FIRST_RECORD_SCHEMA, description: 'Number of the first record, or `newest`.' }),
  deltas: z
    .enum(['true', 'false'])
    .default('true')
    .meta({ description: 'Whether deltas of streaming answers are sent.' }),
});
export type SocketQuery = z.infer<typeof SocketQuery>;

/** Serves a WebSocket until either side closes it. Never rejects. */
export async function serveSocket(
  context: GatewayContext,
  session: BusSession,
  request: FastifyRequest,
  socket: WebSocket,
  query: SocketQuery,
): Promise<void> {
  const connection = new MonitoredSocket(context, request, socket, 'websocket');
  const commands = new SocketCommands(context, session, request, socket, connection);
  socket.on('message', (data, isBinary) => commands.handle(data, isBinary));
  let seat: ReturnType<GatewayContext['feeds']['join']> | undefined;
  try {
    seat = context.feeds.join(session, principalOf(request), 'websocket');
    const { signal } = connection;
    const from = await expectStart(context, session, seat.feed, { field: 'from', from: query.from }, signal);
    await watchFeed(
      seat.feed,
      { write: (item) => write(context, connection, item) },
      {
        from,
        deltas: query.deltas === 'true',
        signal,
        readPage: createPageReader(context.pages, session, principalOf(request)),
      },
    );
    connection.end(connection.signal.reason, true);
  } catch (error) {
    const problem = problemFrom(error);
    if (problem.status === 500) context.log.error({ error, session: session.id }, 'a socket could not be served');
    connection.end(problem, true);
  } finally {
    connection.release();
    seat?.leave();
  }
}

function write({ metrics }: GatewayContext, connection: MonitoredSocket, { n, message }: FeedItem): Promise<boolean> {
  metrics.sent.inc({ what: n === null ? 'delta' : 'record' });
  return connection.write(message);
}
