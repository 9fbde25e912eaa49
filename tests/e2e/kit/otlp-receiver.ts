/** A collector of the test's own: takes OTLP as JSON over HTTP, and keeps what it was sent. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A span as it was received. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: number;
  readonly startNano: bigint;
  readonly endNano: bigint;
  readonly isError: boolean;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly string[];
  readonly moments: readonly string[];
  /** `service.name`, and which process. */
  readonly service: string;
  readonly instance: string;
}

/** A collector that listens. */
export interface OtlpReceiver {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** Everything that was sent, headers included. */
  readonly raw: string;
  stop(): Promise<void>;
}

interface Value {
  readonly stringValue?: string;
  readonly intValue?: number | string;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
  readonly arrayValue?: { readonly values?: readonly Value[] };
}
interface KeyValue {
  readonly key: string;
  readonly value: Value;
}

/** Starts one. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  let raw = '';
  const server = createServer((request, response) => {
    void textOf(request).then((body) => {
      raw += `${body}\n`;
      spans.push(...spansIn(body));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    get raw() {
      return raw;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The spans of one OTLP message in JSON. */
export function spansIn(text: string): ReceivedSpan[] {
  // biome-ignore lint/suspicious/noExplicitAny: what comes over the wire is looked at as it is
  const message = JSON.parse(text) as any;
  const found: ReceivedSpan[] = [];
  for (const { resource, scopeSpans } of message.resourceSpans ?? []) {
    const of = attributesOf(resource?.attributes);
    for (const scope of scopeSpans ?? [])
      for (const span of scope.spans ?? [])
        found.push({
          traceId: span.traceId,
          spanId: span.spanId,
          parentSpanId: span.parentSpanId || undefined,
          name: span.name,
          kind: span.kind,
          startNano: BigInt(span.startTimeUnixNano),
          endNano: BigInt(span.endTimeUnixNano),
          isError: span.status?.code === 2,
          attributes: attributesOf(span.attributes),
          links: (span.links ?? []).map((link: { spanId: string }) => link.spanId),
          moments: (span.events ?? []).map((event: { name: string }) => event.name),
          service: String(of['service.name']),
          instance: String(of['service.instance.id']),
        });
  }
  return found;
}

function attributesOf(list: readonly KeyValue[] = []): Record<string, unknown> {
  return Object.fromEntries(list.map(({ key, value }) => [key, plain(value)]));
}

function plain({ stringValue, intValue, doubleValue, boolValue, arrayValue }: Value): unknown {
  if (arrayValue) return (arrayValue.values ?? []).map(plain);
  return stringValue ?? (intValue === undefined ? (doubleValue ?? boolValue) : Number(intValue));
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString('utf8');
}

/** Spans below one, as lines: `service: name`, deeper ones indented. What runs side by side stands in the order of names. */
export function treeLines(spans: readonly ReceivedSpan[], parentSpanId: string | undefined, depth = 0): string[] {
  const below = spans
    .filter((span) => span.parentSpanId === parentSpanId)
    .map((span) => ({ span, line: `${'  '.repeat(depth)}${span.service.replace('coxswain-', '')}: ${nameOf(span)}` }))
    .sort((a, b) => (a.line < b.line ? -1 : a.line > b.line ? 1 : Number(a.span.startNano - b.span.startNano)));
  return below.flatMap(({ span, line }) => [line, ...treeLines(spans, span.spanId, depth + 1)]);
}

// Scripted models are named by their files.
function nameOf({ name, attributes }: ReceivedSpan): string {
  const said = name.startsWith('chat ') ? 'chat' : name;
  return attributes['gen_ai.tool.name'] === 'delegate' ? `${said} ${String(attributes['gen_ai.tool.call.id'])}` : said;
}
