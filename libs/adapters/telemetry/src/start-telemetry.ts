/**
 * The telemetry of one service. Meters are served on request, and spans are exported if the environment configures it.
 */
import { randomUUID } from 'node:crypto';
import type { Log, Meters, Telemetry } from '@coxswain/ports';
import { VERSION } from '@coxswain/protocol';
import type { Registry } from 'prom-client';
import { createRegistry, registryMeters } from './meters.ts';
import { type MetricsAddress, metricsAddress, serveMetrics } from './metrics-server.ts';
import type { SpanExport, SpansLost } from './span-export.ts';
import { readTraceSettings } from './trace-settings.ts';

/** Options of telemetry. */
export interface TelemetryOptions {
  /** The suffix of its name in traces: `sessions` for `coxswain-sessions`. */
  readonly service: string;
  readonly of: 'host' | 'gateway' | 'worker';
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
  /** Redacts the secrets of the process in a text. */
  readonly masked: (text: string) => string;
  /** The address of the meters. By default `COX_METRICS_PORT` decides. Null: the meters are not served. */
  readonly metrics?: MetricsAddress | null | undefined;
  /** The registry for the meters, if the caller serves it itself. */
  readonly registry?: Registry | undefined;
  /** The time limit for the last export of spans, in milliseconds; 3,000 by default. */
  readonly closeMs?: number | undefined;
}

/** A long-running process may spend this time at its end. Most supervisors wait for ten seconds. */
const CLOSE_MS = 3_000;

/** Running telemetry. */
export interface RunningTelemetry extends Telemetry {
  /** The URL of the meters; null if they are not served. */
  readonly metricsUrl: string | null;
  /**
   * Sends the queued spans within a time limit, and ends. @returns the spans that were lost since the start. Never
   * rejects.
   */
  close(): Promise<SpansLost | null>;
}

/**
 * Starts the telemetry of a service.
 * @throws MetricsAddressError; TraceSettingsError naming the variable; MetricsPortInUseError and other errors of
 *   listening.
 */
export async function startTelemetry(options: TelemetryOptions): Promise<RunningTelemetry> {
  const { service, of, env, log, masked } = options;
  const settings = readTraceSettings(env);
  const asked = env.COX_METRICS_PORT?.trim();
  const address =
    options.metrics === undefined && asked ? metricsAddress(asked, 'COX_METRICS_PORT') : (options.metrics ?? null);
  // Without a reader of the meters there is no registry, so that they cost nothing.
  const registry = options.registry ?? (address ? createRegistry() : null);
  const meters = registry ? registryMeters(registry, of) : NO_METERS;
  const server = address && registry ? await serveMetrics(registry, address) : null;
  if (server) log.info({ url: server.url }, 'metrics are served');
  let spans: SpanExport | null = null;
  if (settings) {
    // Without tracing, the exporter is not loaded.
    const { addressShown, exportSpans } = await import('./span-export.ts');
    const closeMs = options.closeMs ?? CLOSE_MS;
    const as = { service: `coxswain-${service}`, version: VERSION, instance: randomUUID(), masked, closeMs };
    spans = await exportSpans(settings, as, meters, log);
    log.info({ url: masked(addressShown(settings.url)), protocol: settings.protocol }, 'spans are exported');
  }
  return {
    meters,
    spans,
    metricsUrl: server?.url ?? null,
    async close() {
      const [lost] = await Promise.all([spans?.close(), server?.close()]);
      return lost ?? null;
    },
  };
}

const NO_METERS: Meters = { add() {}, observe() {}, census: () => false };
