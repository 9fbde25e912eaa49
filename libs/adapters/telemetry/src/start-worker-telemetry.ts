/** The telemetry of a process that works for sessions of others: tools, personas, hooks. */
import type { WorkObserver } from '@coxswain/protocol';
import { observeWork } from './observe-work.ts';
import { type RunningTelemetry, startTelemetry, type TelemetryOptions } from './start-telemetry.ts';

/** Telemetry that runs, and what observes the work with it. */
export interface WorkerTelemetry extends RunningTelemetry {
  readonly observer: WorkObserver;
}

/**
 * Starts it.
 * @throws what {@link startTelemetry} throws.
 */
export async function startWorkerTelemetry(
  options: Omit<TelemetryOptions, 'of' | 'registry'>,
): Promise<WorkerTelemetry> {
  const telemetry = await startTelemetry({ ...options, of: 'worker' });
  return { ...telemetry, observer: observeWork(telemetry, options.log) };
}
