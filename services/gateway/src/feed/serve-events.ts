/** Server-sent events: one watcher of a session over HTTP. */
import type { ServerResponse } from 'node:http';
import type { BusSession, JournalStart } from '@coxswain/client';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type GatewayContext, principalOf } from '../gateway-context.ts';
import { type Problem, problemFrom } from '../problem.ts';
import { catchUpPages } from './journal-pages.ts';
import type { FeedItem } from './session-feed.ts';
import { watchFeed } from './watch-feed.ts';
import { endedAccess } from './watched-access.ts';

/** How soon a client that has lost the connection comes back, milliseconds: it is told so. */
const RETRY_MS = 1_000;

/** Serves them until whoever asked has gone, does not read, may not any more, or the gateway ends. */
export async function serveEvents(
  context: GatewayContext,
  session: BusSession,
  request: FastifyRequest,
  reply: FastifyReply,
  { from, deltas }: { readonly from: JournalStart; readonly deltas: boolean },
): Promise<void> {
  // Who has gone while it was looked for the session is told of nothing any more, and would keep a place for ever.
  if (reply.raw.destroyed) return void reply.hijack();
  const seat = context.feeds.join(session, principalOf(request), 'sse');
  const leaving = new AbortController();
  const out = reply.raw;
  const leave = () => leaving.abort();
  const stop = () => leaving.abort(problemFrom({ code: 'gateway_stopping', message: 'this gateway is about to end' }));
  out.once('close', leave);
  context.stopping.addEventListener('abort', stop);
  // It lasts as long as it lasts: what bounds a request does not bound this.
  request.raw.socket.setTimeout(0);
  reply.hijack();
  out.writeHead(200, {
    ...(reply.getHeaders() as Record<string, string>),
    'content-type': 'text/event-stream; charset=utf-8',
    // A proxy that gathers answers would hold events back.
    'x-accel-buffering': 'no',
  });
  const sink = new EventSink(out, context, leaving);
  const beat = setInterval(async () => {
    const over = await endedAccess(context, request);
    if (over) leaving.abort(over);
    else sink.beat();
  }, context.times.heartbeatMs);
  try {
    await sink.text(`retry: ${RETRY_MS}\n\n`);
    await watchFeed(seat.feed, sink, {
      from,
      deltas,
      signal: leaving.signal,
      readPage: catchUpPages(context.pages, session),
    });
    end(out, leaving.signal.reason);
  } catch (error) {
    const problem = problemFrom(error);
    if (problem.status === 500) context.log.error({ error, session: session.id }, 'events could not be served');
    // Whoever comes back is told so before there is a stream.
    if (problem.code === 'session_deleted') context.known.forget(session);
    end(out, problem);
  } finally {
    clearInterval(beat);
    context.stopping.removeEventListener('abort', stop);
    out.off('close', leave);
    seat.leave();
  }
}

/** Says why, where there is somebody to say it to and something to say. */
function end(out: ServerResponse, why: unknown): void {
  if (out.destroyed || out.writableEnded) return;
  const problem = (why as Partial<Problem> | undefined)?.document;
  if (problem) out.write(`event: problem\ndata: ${JSON.stringify(problem)}\n\n`);
  out.end();
}

/** Writes as fast as is read, and no faster: what cannot be written is not kept here. */
class EventSink {
  readonly #out: ServerResponse;
  readonly #context: GatewayContext;
  readonly #leaving: AbortController;

  constructor(out: ServerResponse, context: GatewayContext, leaving: AbortController) {
    this.#out = out;
    this.#context = context;
    this.#leaving = leaving;
  }

  write({ n, frame }: FeedItem): Promise<boolean> | boolean {
    this.#context.metrics.sent.inc({ what: n === null ? 'delta' : 'record' });
    return this.text(frame);
  }

  text(text: string | Buffer): Promise<boolean> | boolean {
    if (this.#out.destroyed || this.#leaving.signal.aborted) return false;
    return this.#out.write(text) ? true : this.#drained();
  }

  /** Where something waits to be written already, the connection is known to be there or is about to be cut. */
  beat(): void {
    if (!this.#out.destroyed && this.#out.writableLength === 0) this.#out.write(': still here\n\n');
  }

  #drained(): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (goesOn: boolean) => {
        clearTimeout(stalled);
        this.#out.off('drain', drained);
        this.#leaving.signal.removeEventListener('abort', gone);
        resolve(goesOn);
      };
      const drained = () => settle(true);
      const gone = () => settle(false);
      const stalled = setTimeout(() => {
        this.#context.metrics.cutOff.inc({ kind: 'sse' });
        // There is no use in saying why to somebody who does not read.
        this.#out.destroy();
        settle(false);
      }, this.#context.times.stallMs);
      this.#out.once('drain', drained);
      this.#leaving.signal.addEventListener('abort', gone, { once: true });
    });
  }
}
