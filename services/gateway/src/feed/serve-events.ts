/** Server-sent events: one watcher of a session over HTTP. */
import type { BusSession, JournalStart } from '@coxswain/client';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { GatewayContext } from '../gateway-context.ts';
import type { Problem } from '../problem.ts';
import { openEventStream } from './event-stream.ts';
import { catchUpPages } from './journal-pages.ts';
import { watchFeed } from './watch-feed.ts';

/** How soon a client that has lost the connection comes back, milliseconds: it is told so. */
const RETRY_MS = 1_000;

/** Serves them until whoever asked has gone, does not read, may not any more, or the gateway ends. */
export function serveEvents(
  context: GatewayContext,
  session: BusSession,
  request: FastifyRequest,
  reply: FastifyReply,
  { from, deltas }: { readonly from: JournalStart; readonly deltas: boolean },
): Promise<void> {
  return openEventStream(context, session, request, reply, asProblem, async ({ feed, sink, signal }) => {
    await sink.text(`retry: ${RETRY_MS}\n\n`);
    const write = ({ n, frame }: { readonly n: number | null; readonly frame: Buffer }) => {
      context.metrics.sent.inc({ what: n === null ? 'delta' : 'record' });
      return sink.text(frame);
    };
    await watchFeed(feed, { write }, { from, deltas, signal, readPage: catchUpPages(context.pages, session) });
  });
}

function asProblem({ document }: Problem): string {
  return `event: problem\ndata: ${JSON.stringify(document)}\n\n`;
}
