/** A connection on which server-sent events are written, for as long as somebody listens and may. */
import type { ServerResponse } from 'node:http';
import type { BusSession } from '@coxswain/client';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type GatewayContext, principalOf } from '../gateway-context.ts';
import { type Problem, problemFrom } from '../problem.ts';
import { whenStopping } from '../when-stopping.ts';
import { EventSink } from './event-sink.ts';
import type { SessionFeed } from './session-feed.ts';
import type { Seat } from './session-feeds.ts';
import { endedAccess } from './watched-access.ts';

/** What writes the events is handed this. */
export interface EventStream {
  readonly feed: SessionFeed;
  readonly sink: EventSink;
  /** Aborts when whoever asked has gone, or may not listen any more, or the gateway is about to end; the reason says why. */
  readonly signal: AbortSignal;
}

/** What is said last: why, where there is something to say. */
export type LastWord = (problem: Problem) => string;

/**
 * Opens the stream, lets the events be written, and ends it. What goes wrong is told on the stream.
 * @param lastWord what is written where it ends with a problem.
 * @param taken a place among the session's watchers that whoever asked has already; it is given back here.
 */
export async function openEventStream(
  context: GatewayContext,
  session: BusSession,
  request: FastifyRequest,
  reply: FastifyReply,
  lastWord: LastWord,
  serve: (stream: EventStream) => Promise<void>,
  taken?: Seat,
): Promise<void> {
  // Who has gone while it was looked for the session is told of nothing any more, and would keep a place for ever.
  if (reply.raw.destroyed) {
    taken?.leave();
    return void reply.hijack();
  }
  const seat = taken ?? context.feeds.join(session, principalOf(request), 'sse');
  const leaving = new AbortController();
  const out = reply.raw;
  const leave = () => leaving.abort();
  const stop = () => leaving.abort(problemFrom({ code: 'gateway_stopping', message: 'this gateway is shutting down' }));
  out.once('close', leave);
  const callOff = whenStopping(context, stop);
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
  const beat = setInterval(() => sink.beat(), context.times.heartbeatMs);
  const recheck = setInterval(async () => {
    const over = await endedAccess(context, request);
    if (over) leaving.abort(over);
  }, context.times.recheckMs);
  try {
    await serve({ feed: seat.feed, sink, signal: leaving.signal });
    end(out, leaving.signal.reason, lastWord);
  } catch (error) {
    const problem = problemFrom(error);
    if (problem.status === 500) context.log.error({ error, session: session.id }, 'sending events failed');
    // Whoever comes back is told so before there is a stream.
    if (problem.code === 'session_deleted') context.known.forget(session);
    end(out, problem, lastWord);
  } finally {
    clearInterval(beat);
    clearInterval(recheck);
    callOff();
    out.off('close', leave);
    seat.leave();
  }
}

/** Says why, where there is somebody to say it to and something to say. */
function end(out: ServerResponse, why: unknown, lastWord: LastWord): void {
  if (out.destroyed || out.writableEnded) return;
  const problem = why as Partial<Problem> | undefined;
  if (problem?.document) out.write(lastWord(problem as Problem));
  out.end();
}
