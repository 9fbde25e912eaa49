/** Server-sent events of a session for one client. */
import type { BusSession, JournalStart } from '@coxswain/client';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type GatewayContext, Problem, principalOf } from '../context/mod.ts';
import { openEventStream } from './event-stream.ts';
import { createPageReader } from './journal-pages.ts';
import type { SessionFeed } from './session-feed.ts';
import { watchFeed } from './watch-feed.ts';

/** Reconnection delay that the client is asked to use, in milliseconds. */
const RETRY_MS = 1_000;

/**
 * Serves events until the client disconnects, stops reading or loses its access, or the gateway stops.
 * @param seen number of the last record that the client has received; null if the client has not reconnected.
 * @throws Problem `too_many_watchers` (429), before the stream starts.
 */
export function serveEvents(
  context: GatewayContext,
  session: BusSession,
  request: FastifyRequest,
  reply: FastifyReply,
  { from, seen, deltas }: { readonly from: JournalStart; readonly seen: number | null; readonly deltas: boolean },
): Promise<void> {
  return openEventStream(context, session, request, reply, formatProblem, async ({ feed, sink, signal }) => {
    await sink.text(`retry: ${RETRY_MS}\n\n`);
    const write = ({ n, frame }: { readonly n: number | null; readonly frame: Buffer }) => {
      context.metrics.sent.inc({ what: n === null ? 'delta' : 'record' });
      return sink.text(frame);
    };
    if (seen !== null) await expectSeen(context, session, feed, seen, signal);
    const first = seen === null ? from : seen + 1;
    await watchFeed(
      feed,
      { write },
      { from: first, deltas, signal, readPage: createPageReader(context.pages, session, principalOf(request)) },
    );
  });
}

/**
 * Checks that a record that the client has received still exists. Without it, the journal was restored to fewer records,
 * and the client would miss the new records up to this number. A replica may lag for a moment.
 * @throws Problem `record_not_there` (404); the errors of reading the journal.
 */
async function expectSeen(
  { times }: GatewayContext,
  session: BusSession,
  feed: SessionFeed,
  seen: number,
  signal: AbortSignal,
): Promise<void> {
  await feed.waitForRecord(seen, times.replicaLagMs, signal);
  // Watching reports the error of a feed that has ended.
  if (signal.aborted || feed.ended || feed.newest >= seen) return;
  const newest = Math.max(feed.newest, await session.lastNumber());
  if (newest >= seen) return;
  const message = `last-event-id: record ${seen} does not exist: the newest record is ${newest}; read the session from record 1`;
  throw new Problem('record_not_there', message, { field: 'last-event-id' });
}

function formatProblem({ document }: Problem): string {
  return `event: problem\ndata: ${JSON.stringify(document)}\n\n`;
}
