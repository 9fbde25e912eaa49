/** Server-sent events of a session for one client. */
import type { BusSession } from '@coxswain/client';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type GatewayContext, type Problem, principalOf } from '../context/mod.ts';
import { openEventStream } from './event-stream.ts';
import { expectStart, type WatchStart } from './expect-start.ts';
import { createPageReader } from './journal-pages.ts';
import { watchFeed } from './watch-feed.ts';

/** Reconnection delay that the client is asked to use, in milliseconds. */
const RETRY_MS = 1_000;

/**
 * Serves events until the client disconnects, stops reading or loses its access, or the gateway stops.
 * @throws Problem `too_many_watchers` (429), before the stream starts.
 */
export function serveEvents(
  context: GatewayContext,
  session: BusSession,
  request: FastifyRequest,
  reply: FastifyReply,
  { start, deltas }: { readonly start: WatchStart; readonly deltas: boolean },
): Promise<void> {
  return openEventStream(context, session, request, reply, formatProblem, async ({ feed, sink, signal }) => {
    await sink.text(`retry: ${RETRY_MS}\n\n`);
    const write = ({ n, frame }: { readonly n: number | null; readonly frame: Buffer }) => {
      context.metrics.sent.inc({ what: n === null ? 'delta' : 'record' });
      return sink.text(frame);
    };
    const readPage = createPageReader(context.pages, session, principalOf(request));
    const from = await expectStart(context, session, feed, start, signal);
    await watchFeed(feed, { write }, { from, deltas, signal, readPage });
  });
}

function formatProblem({ document }: Problem): string {
  return `event: problem\ndata: ${JSON.stringify(document)}\n\n`;
}
