/** The telemetry of a worker: a process that serves tools, personas or hooks to sessions. */
import type { WorkObserver } from '@coxswain/protocol';
import { observeWork } from './observe-work.ts';
import { type RunningTelemetry, startTelemetry, type TelemetryOptions } from './start-telemetry.ts';

/** Running telemetry, and the observer that reports work to it. */
export interface WorkerTelemetry extends RunningTelemetry {
  readonly observer: WorkObserver;
}

/**
 * Starts the telemetry of a worker.
 * @throws the errors of {@link startTelemetry}.
 */
export async function startWorkerTelemetry(
  options: Omit<TelemetryOptions, 'of' | 'registry'>,
): Promise<WorkerTelemetry> {
  const telemetry = await startTelemetry({ ...options, of: 'worker' });
  return { ...telemetry, observer: observeWork(telemetry, options.log) };
}
