/** Spans on their way to a collector: queued within a bound, sent in batches, dropped where nobody takes them. Loaded only where somebody traces. */
import type { Log, Meters, SpanSink } from '@coxswain/ports';
import type { EndedSpan, SpanAttributes, TraceContext } from '@coxswain/protocol';
import {
  type Attributes,
  type HrTime,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
} from '@opentelemetry/api';
import { type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace-base';
import { createSampler } from './trace-sampler.ts';
import type { TraceSettings } from './trace-settings.ts';

/** Spans that are exported. */
export interface SpanExport extends SpanSink {
  /** Sends what waits, within the time-out of an export, and ends. Never rejects. */
  close(): Promise<void>;
}

/** What is told of the process in each export, and what never stands in one. */
export interface ExportedAs {
  readonly service: string;
  readonly version: string;
  readonly instance: string;
  /** Takes secrets out of a text. */
  readonly masked: (text: string) => string;
}

const KINDS = { internal: SpanKind.INTERNAL, server: SpanKind.SERVER, client: SpanKind.CLIENT } as const;
/** The result code of a successful export. */
const EXPORTED = 0;

/** Begins to export. */
export async function exportSpans(
  settings: TraceSettings,
  { service, version, instance, masked }: ExportedAs,
  meters: Meters,
  log: Log,
): Promise<SpanExport> {
  const { OTLPTraceExporter } =
    settings.protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto');
  const { url, headers, timeoutMs, queueMax, batchMax, delayMs } = settings;
  const exporter: SpanExporter = new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: timeoutMs });
  const resource = resourceFromAttributes({
    'service.namespace': 'coxswain',
    'service.instance.id': instance,
    ...attributesOf(settings.resource, masked),
    'service.name': settings.serviceName ?? service,
    'service.version': version,
  });
  const scope = { name: 'coxswain', version };
  let waiting = 0;
  let isTroubled = false;
  const told = new TroubleTold(log, masked);
  const counted: SpanExporter = {
    export(spans, done) {
      exporter.export(spans, (result) => {
        waiting -= spans.length;
        const isExported = result.code === EXPORTED;
        meters.add('coxswain_trace_spans_total', { outcome: isExported ? 'exported' : 'dropped' }, spans.length);
        if (isExported) told.works();
        else told.fails(result.error?.message ?? 'the collector did not take them');
        isTroubled = !isExported;
        // The processor would tell its own log of each failure.
        done({ code: EXPORTED });
      });
    },
    shutdown: () => exporter.shutdown(),
  };
  const processor = new BatchSpanProcessor(counted, {
    maxQueueSize: queueMax,
    maxExportBatchSize: Math.min(batchMax, queueMax),
    scheduledDelayMillis: delayMs,
    exportTimeoutMillis: 2 * timeoutMs,
  });
  return {
    keeps: createSampler(settings.sampler),
    masked,
    capturesContent: settings.capturesContent,
    take(span) {
      if (!span.context.sampled) return;
      // Counted here, where what is dropped can be told, and never by the processor, whose queue has as much room.
      if (waiting >= queueMax) {
        meters.add('coxswain_trace_spans_total', { outcome: 'dropped' });
        if (!isTroubled) told.fails('more are made than the collector takes');
        return;
      }
      waiting++;
      processor.onEnd(readable(span, resource, scope, masked));
    },
    async close() {
      const late = new Promise<void>((resolve) => setTimeout(resolve, timeoutMs).unref());
      await Promise.race([processor.shutdown().catch((error: Error) => told.fails(error.message)), late]);
    },
  };
}

/** Says once that spans are lost, and once that they are not any more. */
class TroubleTold {
  readonly #log: Log;
  readonly #masked: (text: string) => string;
  #isTold = false;

  constructor(log: Log, masked: (text: string) => string) {
    this.#log = log;
    this.#masked = masked;
  }

  fails(why: string): void {
    if (this.#isTold) return;
    this.#isTold = true;
    this.#log.warn({ error: this.#masked(why).slice(0, 500) }, 'spans are dropped: the collector cannot be reached');
  }

  works(): void {
    if (!this.#isTold) return;
    this.#isTold = false;
    this.#log.info({}, 'the collector takes spans again');
  }
}

function readable(
  span: EndedSpan,
  resource: Resource,
  instrumentationScope: ReadableSpan['instrumentationScope'],
  masked: (text: string) => string,
): ReadableSpan {
  const { name, kind, startMs, endMs, error, moments, links, attributes, parent } = span;
  const context = contextOf(span.context, false);
  return {
    name: masked(name),
    kind: KINDS[kind],
    spanContext: () => context,
    // Whoever is above may have been told to us by another process.
    ...(parent ? { parentSpanContext: contextOf(parent, true) } : {}),
    startTime: timeOf(startMs),
    endTime: timeOf(endMs),
    duration: timeOf(endMs - startMs),
    status: error
      ? { code: SpanStatusCode.ERROR, ...(error.message === undefined ? {} : { message: masked(error.message) }) }
      : { code: SpanStatusCode.UNSET },
    attributes: attributesOf(error ? { ...attributes, 'error.type': error.type } : attributes, masked),
    links: links.map((link) => ({ context: contextOf(link, true) })),
    events: moments.map((moment) => ({
      name: moment.name,
      time: timeOf(moment.atMs),
      attributes: attributesOf(moment.attributes, masked),
    })),
    ended: true,
    resource,
    instrumentationScope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function contextOf({ traceId, spanId, sampled }: TraceContext, isRemote: boolean): SpanContext {
  return { traceId, spanId, isRemote, traceFlags: sampled ? TraceFlags.SAMPLED : TraceFlags.NONE };
}

function attributesOf(attributes: SpanAttributes, masked: (text: string) => string): Attributes {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [
      name,
      typeof value === 'string' ? masked(value) : typeof value === 'object' ? value.map(masked) : value,
    ]),
  );
}

function timeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1_000_000)];
}
