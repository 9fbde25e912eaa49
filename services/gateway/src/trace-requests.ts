/** A span for each request, below that of whoever has sent it; commands are sent below it. */
import { newSpanId, newTraceId } from '@coxswain/adapter-telemetry';
import type { SpanSink } from '@coxswain/ports';
import { type EndedSpan, formatTraceparent, parseTraceparent, type TraceContext } from '@coxswain/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { App } from './create-app.ts';
import type { Problem } from './problem.ts';

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
    /** What it was refused with, or how it failed; null where it was answered. */
    problem: Problem | null;
  }
}

/** What is asked all the time, by machines. */
const UNTRACED: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

/** Has every request traced that is about sessions. @param spans null where nobody traces: what a request says is handed on. */
export function traceRequests(app: App, spans: SpanSink | null, now: () => number): void {
  app.decorateRequest('trace', null);
  app.decorateRequest('problem', null);
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
  const { problem } = request;
  const [host, port] = hostAndPort(request.host);
  const userAgent = single(request.headers['user-agent']);
  const { session_id } = (request.params ?? {}) as { readonly session_id?: unknown };
  return {
    context,
    parent,
    name: `${request.method} ${route}`,
    kind: 'server',
    startMs,
    endMs: Math.max(startMs, endMs),
    error:
      reply.statusCode >= 500
        ? {
            type: problem?.code ?? String(reply.statusCode),
            message: problem?.message ?? `answered ${reply.statusCode}`,
          }
        : null,
    attributes: {
      'http.request.method': request.method,
      'http.route': route,
      'http.response.status_code': reply.statusCode,
      // Without the query, in which people put secrets.
      'url.path': (request.url.split('?', 1)[0] ?? '').slice(0, TEXT_MAX),
      'url.scheme': request.protocol,
      'server.address': host.slice(0, TEXT_MAX),
      ...(port === undefined ? {} : { 'server.port': port }),
      'client.address': request.ip,
      'network.protocol.name': 'http',
      'network.protocol.version': request.raw.httpVersion,
      ...(userAgent === undefined ? {} : { 'user_agent.original': userAgent.slice(0, TEXT_MAX) }),
      ...(problem ? { 'coxswain.code': problem.code } : {}),
      ...(typeof session_id === 'string' ? { 'gen_ai.conversation.id': session_id.slice(0, 64) } : {}),
    },
    moments: [],
    links: [],
  };
}

/** Characters of a text that a client chooses. */
const TEXT_MAX = 512;

/** What a client called this server: `localhost:7707`, `[::1]:7707`, `cox.example.com`. */
function hostAndPort(host: string): [host: string, port: number | undefined] {
  const [, name = host, port] = /^(.*?)(?::(\d{1,5}))?$/.exec(host) ?? [];
  return [name, port === undefined ? undefined : Number(port)];
}

function single(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined;
}
