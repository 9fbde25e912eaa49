/** The telemetry of one service: its meters, served where that was asked for, and its spans, exported where the environment says so. */
import { randomUUID } from 'node:crypto';
import type { Log, Meters, Telemetry } from '@coxswain/ports';
import { VERSION } from '@coxswain/protocol';
import type { Registry } from 'prom-client';
import { createRegistry, registryMeters } from './meters.ts';
import { type MetricsAddress, metricsAddress, serveMetrics } from './metrics-server.ts';
import type { SpanExport, SpansLost } from './span-export.ts';
import { readTraceSettings } from './trace-settings.ts';

/** What telemetry is started with. */
export interface TelemetryOptions {
  /** The last word of its name in traces: `coxswain-sessions`. */
  readonly service: string;
  readonly of: 'host' | 'gateway' | 'worker';
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
  /** Takes the secrets of the process out of a text. */
  readonly masked: (text: string) => string;
  /** Where meters are served; without it, where `COX_METRICS_PORT` says, if it says anything. Null: nowhere. */
  readonly metrics?: MetricsAddress | null | undefined;
  /** The registry to make them in, of whoever serves it itself. */
  readonly registry?: Registry | undefined;
  /** How long the end may wait for the collector of spans; 3,000 by default. */
  readonly closeMs?: number | undefined;
}

/** A process that stays may spend so long at its end: supervisors wait for ten seconds, mostly. */
const CLOSE_MS = 3_000;

/** Telemetry that runs. */
export interface RunningTelemetry extends Telemetry {
  /** Where meters are served; null where they are not. */
  readonly metricsUrl: string | null;
  /** Sends the spans that wait, within a bound, and ends; says what was lost since the start. Never rejects. */
  close(): Promise<SpansLost | null>;
}

/**
 * Starts it.
 * @throws MetricsAddressError, TraceSettingsError naming the variable; and what listening throws where the port is taken.
 */
export async function startTelemetry(options: TelemetryOptions): Promise<RunningTelemetry> {
  const { service, of, env, log, masked } = options;
  const settings = readTraceSettings(env);
  const asked = env.COX_METRICS_PORT?.trim();
  const address =
    options.metrics === undefined && asked ? metricsAddress(asked, 'COX_METRICS_PORT') : (options.metrics ?? null);
  // Nobody pays for meters that nobody can read.
  const registry = options.registry ?? (address ? createRegistry() : null);
  const meters = registry ? registryMeters(registry, of) : NO_METERS;
  const server = address && registry ? await serveMetrics(registry, address) : null;
  if (server) log.info({ url: server.url }, 'metrics are served');
  let spans: SpanExport | null = null;
  if (settings) {
    // Nobody who does not trace pays for what exports.
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
