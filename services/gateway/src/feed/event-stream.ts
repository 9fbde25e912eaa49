/** A connection for server-sent events, open while the client is connected and authorized. */
import type { ServerResponse } from 'node:http';
import type { BusSession } from '@coxswain/client';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type GatewayContext, onStopping, type Problem, principalOf, problemFrom } from '../context/mod.ts';
import { EventSink } from './event-sink.ts';
import type { SessionFeed } from './session-feed.ts';
import type { Seat } from './session-feeds.ts';
import { findAccessProblem } from './watched-access.ts';

/** Arguments of a function that writes the events. */
export interface EventStream {
  readonly feed: SessionFeed;
  readonly sink: EventSink;
  /**
   * Aborts if the client disconnects, loses its access, or the gateway stops. The reason of the latter two is a
   * Problem.
   */
  readonly signal: AbortSignal;
}

/** Formats the last message of a stream that ends with a problem. */
export type ProblemFormat = (problem: Problem) => string;

/**
 * Opens the stream, writes the events and ends it. Errors after the start are written to the stream.
 * @param formatProblem formats the last message, if the stream ends with a problem.
 * @param serve writes the events.
 * @param ownSeat a watcher slot that the caller has already acquired; it is released here.
 * @throws Problem `too_many_watchers` (429), before the stream starts.
 */
export async function openEventStream(
  context: GatewayContext,
  session: BusSession,
  request: FastifyRequest,
  reply: FastifyReply,
  formatProblem: ProblemFormat,
  serve: (stream: EventStream) => Promise<void>,
  ownSeat?: Seat,
): Promise<void> {
  // The client disconnected before the stream started, so its `close` event has been emitted already. A slot taken now
  // would never be released.
  if (reply.raw.destroyed) {
    ownSeat?.leave();
    return void reply.hijack();
  }
  const seat = ownSeat ?? context.feeds.join(session, principalOf(request), 'sse');
  const leaving = new AbortController();
  const out = reply.raw;
  const leave = () => leaving.abort();
  const stop = () => leaving.abort(problemFrom({ code: 'gateway_stopping', message: 'this gateway is shutting down' }));
  out.once('close', leave);
  const removeStopListener = onStopping(context, stop);
  // An event stream has no maximum duration: disable the inactivity timeout of the socket.
  request.raw.socket.setTimeout(0);
  reply.hijack();
  out.writeHead(200, {
    ...(reply.getHeaders() as Record<string, string>),
    'content-type': 'text/event-stream; charset=utf-8',
    // Prevents proxies from buffering events.
    'x-accel-buffering': 'no',
  });
  const sink = new EventSink(out, context, leaving);
  const heartbeat = setInterval(() => sink.heartbeat(), context.times.heartbeatMs);
  const recheck = setInterval(async () => {
    const problem = await findAccessProblem(context, request);
    if (problem) leaving.abort(problem);
  }, context.times.recheckMs);
  const end = (why: unknown) => endResponse(out, why, formatProblem, context.times.stallMs);
  try {
    await serve({ feed: seat.feed, sink, signal: leaving.signal });
    end(leaving.signal.reason);
  } catch (error) {
    const problem = problemFrom(error);
    if (problem.status === 500) context.log.error({ error, session: session.id }, 'sending events failed');
    // A client that reconnects then gets the error as an HTTP status.
    if (problem.code === 'session_deleted') context.known.forget(session);
    end(problem);
  } finally {
    clearInterval(heartbeat);
    clearInterval(recheck);
    removeStopListener();
    out.off('close', leave);
    seat.leave();
  }
}

/**
 * Writes the reason, if there is one and the client is connected, and ends the response.
 * @param withinMs time within which the client reads the rest, in milliseconds. Then its connection is closed.
 */
function endResponse(out: ServerResponse, why: unknown, formatProblem: ProblemFormat, withinMs: number): void {
  if (out.destroyed || out.writableEnded) return;
  const problem = why as Partial<Problem> | undefined;
  if (problem?.document) out.write(formatProblem(problem as Problem));
  const late = setTimeout(() => out.destroy(), withinMs).unref();
  out.once('close', () => clearTimeout(late));
  out.end();
}
