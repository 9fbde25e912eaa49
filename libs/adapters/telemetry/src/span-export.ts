/**
 * Exports spans to a collector: a bounded queue, sent in batches. Spans that the collector does not accept are dropped.
 * Loaded only if tracing is on.
 */
import type { Log, Meters, SpanSink } from '@coxswain/ports';
import { cutText, type EndedSpan, type SpanAttributes, type TraceContext } from '@coxswain/protocol';
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

/** A running export of spans. */
export interface SpanExport extends SpanSink {
  /**
   * Sends the queued spans and ends. Spans that the collector has not accepted within the time limit are dropped. Never
   * rejects.
   * @returns the spans that were lost since the start; null without losses.
   */
  close(): Promise<SpansLost | null>;
}

/** Spans that the collector did not receive. */
export interface SpansLost {
  readonly count: number;
  /** The reason for the last loss: `the collector at … refused them with status 500`. Contains no secrets. */
  readonly why: string;
}

/** The identity of the process in each export, and the redaction of secrets. */
export interface ExportedAs {
  readonly service: string;
  readonly version: string;
  readonly instance: string;
  /** Redacts secrets in a text. */
  readonly masked: (text: string) => string;
  /** The time limit of {@link SpanExport.close}, in milliseconds. */
  readonly closeMs: number;
}

const KINDS = { internal: SpanKind.INTERNAL, server: SpanKind.SERVER, client: SpanKind.CLIENT } as const;
/** The result code of a successful export. */
const EXPORTED = 0;
/** The name of the exporter's error for a status that is not successful. */
const REFUSED_BY_COLLECTOR = 'OTLPExporterError';
const ERROR_CHARS_MAX = 500;

/** Starts the export. */
export async function exportSpans(
  settings: TraceSettings,
  { service, version, instance, masked, closeMs }: ExportedAs,
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
  const losses = new LossReporter(meters, log, masked, addressShown(url));
  let isClosed = false;
  const counted: SpanExporter = {
    export(spans, done) {
      exporter.export(spans, (result) => {
        // The spans that were queued at the end are already reported as dropped.
        if (isClosed) return;
        waiting -= spans.length;
        const isExported = result.code === EXPORTED;
        if (isExported) {
          meters.add('coxswain_trace_spans_total', { outcome: 'exported' }, spans.length);
          losses.ends();
        } else losses.drops(spans.length, ...whyNot(result.error));
        isTroubled = !isExported;
        // The processor would log each failure in its own log.
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
      // Counted here, so that drops are reported. The processor's queue has the same size, so it drops none itself.
      if (waiting >= queueMax) {
        // If the collector fails, the queue is full for the reason of that failure.
        losses.drops(1, isTroubled ? null : 'is slower than this process');
        return;
      }
      waiting++;
      processor.onEnd(readable(span, resource, scope, masked));
    },
    async close() {
      const withinMs = Math.min(closeMs, timeoutMs);
      const late = new Promise<void>((resolve) => setTimeout(resolve, withinMs).unref());
      const failed = (error: Error) =>
        log.warn({ error: masked(error.message) }, 'the export of spans did not end well');
      await Promise.race([processor.shutdown().catch(failed), late]);
      isClosed = true;
      if (waiting > 0) losses.drops(waiting, `did not accept them within ${withinMs} ms of the end`);
      waiting = 0;
      return losses.lost;
    },
  };
}

/** Counts lost spans. Logs each reason once, and the recovery once. */
class LossReporter {
  readonly #meters: Meters;
  readonly #log: Log;
  readonly #masked: (text: string) => string;
  readonly #collector: string;
  readonly #reported = new Set<string>();
  #count = 0;
  #why = 'did not receive them';

  constructor(meters: Meters, log: Log, masked: (text: string) => string, address: string) {
    this.#meters = meters;
    this.#log = log;
    this.#masked = masked;
    this.#collector = `the collector at ${masked(address)}`;
  }

  get lost(): SpansLost | null {
    return this.#count === 0 ? null : { count: this.#count, why: `${this.#collector} ${this.#why}` };
  }

  /** @param what the failure of the collector, as the rest of a sentence; null: the previous reason still applies. */
  drops(count: number, what: string | null, detail?: string): void {
    this.#meters.add('coxswain_trace_spans_total', { outcome: 'dropped' }, count);
    this.#count += count;
    if (what === null) return;
    this.#why = what;
    if (this.#reported.has(what)) return;
    this.#reported.add(what);
    const error = detail ? { error: cutText(this.#masked(detail), ERROR_CHARS_MAX) } : {};
    this.#log.warn(error, `spans are dropped: ${this.#collector} ${what}`);
  }

  ends(): void {
    if (this.#reported.size === 0) return;
    this.#reported.clear();
    this.#log.info({}, 'the collector accepts spans again');
  }
}

/** The reason why a collector did not accept spans, as the rest of a sentence, and the error message. */
function whyNot(error: (Error & { readonly code?: unknown }) | undefined): [what: string, detail?: string] {
  if (!error) return ['did not accept them'];
  // The collector has answered, so it can be reached. After several attempts the exporter does not report the status.
  if (error.name === REFUSED_BY_COLLECTOR)
    return typeof error.code === 'number'
      ? [`refused them with status ${error.code}`, error.message]
      : ['refused them with status 429, 502, 503 or 504 each time', error.message];
  // System errors have a code. The exporter itself reports only that the time was up.
  if (typeof error.code === 'string') return ['cannot be reached', error.message || error.code];
  return ['did not accept them', error.message];
}

/** The address without parts that may contain a key. */
export function addressShown(text: string): string {
  const url = new URL(text);
  url.username = '';
  url.password = '';
  url.search = '';
  return url.href;
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
    // The parent span may be in another process.
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
