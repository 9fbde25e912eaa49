/**
 * Formats spans as OTLP in JSON (https://opentelemetry.io/docs/specs/otlp/), one message per line, as collectors accept
 * and files store it.
 */
import { type EndedSpan, type SpanAttributes, type SpanValue, VERSION } from '@coxswain/protocol';

const KINDS = { internal: 1, server: 2, client: 3 } as const;
const ERROR = 2;
/** The service name of a session's spans. */
const SERVICE = 'coxswain-sessions';

/** Formats one span as a complete message. */
export function otlpLine(span: EndedSpan): string {
  const { context, parent, name, kind, startMs, endMs, error, attributes, moments, links } = span;
  const written = {
    traceId: context.traceId,
    spanId: context.spanId,
    ...(parent ? { parentSpanId: parent.spanId } : {}),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nano(startMs),
    endTimeUnixNano: nano(endMs),
    attributes: pairs(error ? { ...attributes, 'error.type': error.type } : attributes),
    events: moments.map((moment) => ({
      name: moment.name,
      timeUnixNano: nano(moment.atMs),
      attributes: pairs(moment.attributes),
    })),
    links: links.map(({ traceId, spanId }) => ({ traceId, spanId })),
    status: error ? { code: ERROR, ...(error.message === undefined ? {} : { message: error.message }) } : {},
  };
  const resource = { attributes: pairs({ 'service.name': SERVICE, 'service.version': VERSION }) };
  const scopeSpans = [{ scope: { name: 'coxswain', version: VERSION }, spans: [written] }];
  return JSON.stringify({ resourceSpans: [{ resource, scopeSpans }] });
}

function nano(ms: number): string {
  return `${BigInt(Math.round(ms * 1_000)) * 1_000n}`;
}

function pairs(attributes: SpanAttributes): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }));
}

function anyValue(value: SpanValue): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'object') return { arrayValue: { values: value.map(anyValue) } };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
