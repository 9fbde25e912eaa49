/** A span for each request, as a child of the sender's span. Spans of commands are its children. */
import { newSpanId, newTraceId } from '@coxswain/adapter-telemetry';
import type { SpanSink } from '@coxswain/ports';
import { type EndedSpan, formatTraceparent, parseTraceparent, type TraceContext } from '@coxswain/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { App } from '../app/mod.ts';
import type { Problem } from '../context/mod.ts';

/** The position of a request in a trace. */
export interface TracePlace {
  readonly context: TraceContext;
  readonly parent: TraceContext | null;
  readonly startMs: number;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Null if the request is not traced. */
    trace: TracePlace | null;
    /** The problem of the response; null if the request succeeded. */
    problem: Problem | null;
  }
}

/** Routes that machines poll. */
const UNTRACED: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

/**
 * Traces each request below `/v1/`.
 * @param spans null if the gateway records no spans; the trace context of a request is passed through then.
 */
export function traceRequests(app: App, spans: SpanSink | null, now: () => number): void {
  app.decorateRequest('trace', null);
  app.decorateRequest('problem', null);
  app.addHook('onRequest', async (request) => {
    const { url } = request.routeOptions;
    const parent = parseTraceparent(singleHeader(request.headers.traceparent));
    if (url === undefined || UNTRACED.has(url) || !url.startsWith('/v1/')) return;
    request.trace = createChildPlace(parent, spans, now());
  });
  app.addHook('onResponse', async (request, reply) => {
    if (spans && request.trace) spans.take(spanOf(request, reply, request.trace, now()));
  });
}

/**
 * The span of work that `parent` requested. Without a span sink, the parent's context is passed through; null if there
 * is no parent.
 */
export function createChildPlace(
  parent: TraceContext | null,
  spans: SpanSink | null,
  startMs: number,
): TracePlace | null {
  if (!spans) return parent && { context: parent, parent, startMs };
  const traceId = parent?.traceId ?? newTraceId();
  return { context: { traceId, spanId: newSpanId(), sampled: spans.keeps(traceId, parent) }, parent, startMs };
}

/** The `traceparent` header of the command that a request sends. */
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
  const userAgent = singleHeader(request.headers['user-agent']);
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
      // Without the query, which may contain secrets.
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

/** Maximum length of a text that a client chooses, in characters. */
const TEXT_MAX = 512;

/** Splits a Host header into name and port: `localhost:7707`, `[::1]:7707`, `cox.example.com`. */
function hostAndPort(host: string): [host: string, port: number | undefined] {
  const [, name = host, port] = /^(.*?)(?::(\d{1,5}))?$/.exec(host) ?? [];
  return [name, port === undefined ? undefined : Number(port)];
}

function singleHeader(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined;
}
