/** Settings of the span export, from the standard variables of OpenTelemetry. */

/** The destination of spans, and the bounds of the export. */
export interface TraceSettings {
  /** The URL of the collector's traces endpoint. */
  readonly url: string;
  readonly protocol: 'http/json' | 'http/protobuf';
  /** Headers of each export; usually keys of a collector. */
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string | undefined;
  /** `OTEL_RESOURCE_ATTRIBUTES` */
  readonly resource: Readonly<Record<string, string>>;
  readonly sampler: SamplerSettings;
  readonly capturesContent: boolean;
  readonly timeoutMs: number;
  readonly queueMax: number;
  readonly batchMax: number;
  readonly delayMs: number;
}

/** The selection of kept traces. */
export interface SamplerSettings {
  /** Whether the decision of a parent span in another process applies. */
  readonly isParentBased: boolean;
  /** The share of the other traces that is kept, from 0 to 1, by their ids. */
  readonly ratio: number;
}

/** A variable has an invalid value. */
export class TraceSettingsError extends Error {
  override readonly name = 'TraceSettingsError';
  readonly code = 'invalid_field';
}

/**
 * Reads the settings. Null without tracing: there is no endpoint, or `OTEL_SDK_DISABLED` or `OTEL_TRACES_EXPORTER=none`
 * turns it off.
 * @throws TraceSettingsError naming the variable.
 */
export function readTraceSettings(env: NodeJS.ProcessEnv): TraceSettings | null {
  const off = env.OTEL_SDK_DISABLED?.trim().toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER?.trim() === 'none';
  const own = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT?.trim();
  const common = env.OTEL_EXPORTER_OTLP_ENDPOINT?.trim();
  if (off || (!own && !common)) return null;
  // By the specification, the common endpoint is a base URL, and the endpoint for traces is used unchanged.
  const url = own
    ? addressOf('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', own)
    : `${addressOf('OTEL_EXPORTER_OTLP_ENDPOINT', common as string).replace(/\/$/, '')}/v1/traces`;
  return {
    url,
    protocol: protocolOf(env),
    headers: pairsIn(env.OTEL_EXPORTER_OTLP_TRACES_HEADERS ?? env.OTEL_EXPORTER_OTLP_HEADERS),
    serviceName: env.OTEL_SERVICE_NAME?.trim() || undefined,
    resource: pairsIn(env.OTEL_RESOURCE_ATTRIBUTES),
    sampler: samplerOf(env),
    capturesContent: env.OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT?.trim().toLowerCase() === 'true',
    timeoutMs: whole(env, 'OTEL_EXPORTER_OTLP_TIMEOUT', 10_000, 60_000),
    queueMax: whole(env, 'OTEL_BSP_MAX_QUEUE_SIZE', 2_048, 65_536),
    batchMax: whole(env, 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512, 8_192),
    delayMs: whole(env, 'OTEL_BSP_SCHEDULE_DELAY', 1_000, 60_000),
  };
}

function addressOf(name: string, text: string): string {
  const url = URL.parse(text);
  if (url && /^https?:$/.test(url.protocol)) return text;
  throw new TraceSettingsError(`${name} is not an http or https address`);
}

function protocolOf(env: NodeJS.ProcessEnv): TraceSettings['protocol'] {
  const name = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL?.trim()
    ? 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'
    : 'OTEL_EXPORTER_OTLP_PROTOCOL';
  const asked = env[name]?.trim() || 'http/protobuf';
  if (asked === 'http/json' || asked === 'http/protobuf') return asked;
  throw new TraceSettingsError(`${name} takes http/json or http/protobuf, not "${asked.slice(0, 40)}"`);
}

const SAMPLERS = ['always_on', 'always_off', 'traceidratio'].flatMap((name) => [name, `parentbased_${name}`]);

function samplerOf(env: NodeJS.ProcessEnv): SamplerSettings {
  const asked = env.OTEL_TRACES_SAMPLER?.trim() || 'parentbased_always_on';
  if (!SAMPLERS.includes(asked))
    throw new TraceSettingsError(`OTEL_TRACES_SAMPLER takes ${SAMPLERS.join(', ')}, not "${asked.slice(0, 40)}"`);
  const isParentBased = asked.startsWith('parentbased_');
  if (!asked.endsWith('traceidratio')) return { isParentBased, ratio: asked.endsWith('always_on') ? 1 : 0 };
  const text = env.OTEL_TRACES_SAMPLER_ARG?.trim() || '1';
  const ratio = Number(text);
  if (ratio >= 0 && ratio <= 1) return { isParentBased, ratio };
  throw new TraceSettingsError(`OTEL_TRACES_SAMPLER_ARG takes a number from 0 to 1, not "${text.slice(0, 40)}"`);
}

/** `key=value,key2=value2`, the values percent-encoded, as in W3C Baggage. */
function pairsIn(text = ''): Record<string, string> {
  return Object.fromEntries(
    text.split(',').flatMap((pair) => {
      const at = pair.indexOf('=');
      return at > 0 ? [[pair.slice(0, at).trim(), decoded(pair.slice(at + 1).trim())]] : [];
    }),
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A percent sign outside of an encoding is kept.
    return text;
  }
}

function whole(env: NodeJS.ProcessEnv, name: string, otherwise: number, max: number): number {
  const text = env[name]?.trim();
  if (!text) return otherwise;
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1 && value <= max) return value;
  throw new TraceSettingsError(`${name} takes a whole number from 1 to ${max}, not "${text.slice(0, 40)}"`);
}
