/** A span for each request, below that of whoever has sent it; commands are sent below it. */
import { newSpanId, newTraceId } from '@coxswain/adapter-telemetry';
import type { SpanSink } from '@coxswain/ports';
import { type EndedSpan, formatTraceparent, parseTraceparent, type TraceContext } from '@coxswain/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { App } from './create-app.ts';

/** Where a request stands in a trace. */
export interface TracePlace {
  readonly context: TraceContext;
  readonly parent: TraceContext | null;
  readonly startMs: number;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Null where nobody traces and the request says nothing. */
    trace: TracePlace | null;
  }
}

/** What is asked all the time, by machines. */
const UNTRACED: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

/** Has every request traced that is about sessions. @param spans null where nobody traces: what a request says is handed on. */
export function traceRequests(app: App, spans: SpanSink | null, now: () => number): void {
  app.decorateRequest('trace', null);
  app.addHook('onRequest', async (request) => {
    const { url } = request.routeOptions;
    const parent = parseTraceparent(single(request.headers.traceparent));
    if (url === undefined || UNTRACED.has(url) || !url.startsWith('/v1/')) return;
    request.trace = placeBelow(parent, spans, now());
  });
  app.addHook('onResponse', async (request, reply) => {
    if (spans && request.trace) spans.take(spanOf(request, reply, request.trace, now()));
  });
}

/** The place of what was sent by `parent`. Null where nobody traces and there is no parent: who does not trace stands in no trace. */
export function placeBelow(parent: TraceContext | null, spans: SpanSink | null, startMs: number): TracePlace | null {
  if (!spans) return parent && { context: parent, parent, startMs };
  const traceId = parent?.traceId ?? newTraceId();
  return { context: { traceId, spanId: newSpanId(), sampled: spans.keeps(traceId, parent) }, parent, startMs };
}

/** For the header of the command that a request sends. */
export function traceparentOf({ trace }: FastifyRequest): string | undefined {
  return trace ? formatTraceparent(trace.context) : undefined;
}

function spanOf(
  request: FastifyRequest,
  reply: FastifyReply,
  { context, parent, startMs }: TracePlace,
  endMs: number,
): EndedSpan {
  const route = request.routeOptions.url ?? 'none';
  const { session_id } = (request.params ?? {}) as { readonly session_id?: unknown };
  return {
    context,
    parent,
    name: `${request.method} ${route}`,
    kind: 'server',
    startMs,
    endMs: Math.max(startMs, endMs),
    error: reply.statusCode >= 500 ? { type: String(reply.statusCode) } : null,
    attributes: {
      'http.request.method': request.method,
      'http.route': route,
      'http.response.status_code': reply.statusCode,
      ...(typeof session_id === 'string' ? { 'gen_ai.conversation.id': session_id.slice(0, 64) } : {}),
    },
    moments: [],
    links: [],
  };
}

function single(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined;
}
