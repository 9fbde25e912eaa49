/**
 * Serves a session to one inspector: a WebSocket that sends XState's inspection messages. Incoming messages are
 * ignored.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { BusSession } from '@coxswain/client';
import type { JournalRecord } from '@coxswain/protocol';
import { SessionInspector } from '@coxswain/session';
import type { FastifyRequest } from 'fastify';
import type { WebSocket } from 'ws';
import * as z from 'zod';
import { type GatewayContext, principalOf, problemFrom } from '../context/mod.ts';
import { createPageReader, expectStart, type FeedItem, watchFeed } from '../feed/mod.ts';
import { FIRST_RECORD_SCHEMA, FirstRecord } from '../http/mod.ts';
import { MonitoredSocket } from './monitored-socket.ts';

/** The query of an inspector. */
export const InspectQuery = z.strictObject({
  from: FirstRecord.meta({
    ...FIRST_RECORD_SCHEMA,
    description:
      'Number of the first record whose events are sent, or `newest`. The first snapshot contains the earlier state.',
  }),
  context: z.enum(['true', 'false']).default('true').meta({
    description:
      'Whether snapshots contain the context of the state machine. Without it they have a few hundred bytes.',
  }),
});
export type InspectQuery = z.infer<typeof InspectQuery>;

/** The journal differs from the kept fold, or is damaged. */
const MISMATCH_CODES: ReadonlySet<string> = new Set(['replay_diverged', 'chain_broken', 'machine_version_unknown']);

/** Number of records that are folded without output before the event loop gets a turn. */
const SILENT_RECORDS_MAX = 64;

/**
 * Serves an inspector until either side closes the connection. Never rejects. The close reason is the code of the error
 * that ended it.
 */
export async function serveInspector(
  context: GatewayContext,
  session: BusSession,
  request: FastifyRequest,
  socket: WebSocket,
  query: InspectQuery,
): Promise<void> {
  const connection = new MonitoredSocket(context, request, socket, 'inspector');
  let releaseInspector: (() => void) | undefined;
  let seat: ReturnType<GatewayContext['feeds']['join']> | undefined;
  try {
    releaseInspector = context.inspectors.acquire(principalOf(request));
    seat = context.feeds.join(session, principalOf(request), 'inspector');
    const { signal } = connection;
    const first = await expectStart(context, session, seat.feed, { field: 'from', from: query.from }, signal);
    // The feed counts, too: the replica that answered may lag behind it.
    const from = first === 'newest' ? Math.max(1, await session.lastNumber(), seat.feed.newest) : first;
    // The record before the first one is folded, too: it determines the first snapshot.
    const after = context.folds.before(session.ref, from - 1) ?? undefined;
    const inspector = new SessionInspector(session.id, { from, context: query.context === 'true', after });
    const pageFrom = createPageReader(context.pages, session, principalOf(request));
    await watchFeed(
      seat.feed,
      { write: (item) => write(context, connection, inspector, item) },
      {
        // The machine must be folded from its current position, even if the first record to send is a later one.
        from: inspector.n + 1,
        deltas: false,
        signal,
        readPage: (next, signal) => {
          // Page boundaries are remembered, so the next page needs no counting.
          if (inspector.n === next - 1 && inspector.n > 0) context.folds.keep(session.ref, inspector.fold);
          return pageFrom(next, signal);
        },
      },
    );
    connection.end(connection.signal.reason, false);
  } catch (error) {
    const problem = problemFrom(error);
    if (MISMATCH_CODES.has(problem.code)) context.folds.forget(session.ref);
    if (problem.status === 500) context.log.error({ error, session: session.id }, 'a session could not be inspected');
    connection.end(problem, false);
  } finally {
    connection.release();
    seat?.leave();
    releaseInspector?.();
  }
}

/** Folds a record and writes its messages, each after the previous one is written. */
async function write(
  { metrics }: GatewayContext,
  connection: MonitoredSocket,
  inspector: SessionInspector,
  { json }: FeedItem,
): Promise<boolean> {
  // The text was made from a parsed record.
  const record = JSON.parse(json) as JournalRecord;
  let hasOutput = false;
  for (const message of inspector.take(record)) {
    hasOutput = true;
    metrics.sent.inc({ what: 'inspection' });
    if (!(await connection.write(JSON.stringify(message)))) return false;
  }
  if (!hasOutput && record.n % SILENT_RECORDS_MAX === 0) await turn();
  return true;
}
