/** Telemetry: meters for Prometheus, spans for OpenTelemetry collectors. */
export { mergeMetrics, serveMergedMetrics } from './merge-metrics.ts';
export { counterOf, createRegistry, gaugeOf, histogramOf, registryMeters } from './meters.ts';
export { type MetricsAddress, MetricsAddressError, type MetricsServer, metricsAddress } from './metrics-server.ts';
export { newSpanId, newTraceId, observeWork } from './observe-work.ts';
export type { SpansLost } from './span-export.ts';
export { type RunningTelemetry, startTelemetry, type TelemetryOptions } from './start-telemetry.ts';
export { startWorkerTelemetry, type WorkerTelemetry } from './start-worker-telemetry.ts';
export { readTraceSettings, TraceSettingsError } from './trace-settings.ts';
