/** Runs a service in this process until it is stopped or fails permanently. */
import { CliError, EXIT, type ExitCode } from '../line/mod.ts';
import { answerHealth } from './health-socket.ts';
import { reportDisconnections } from './report-disconnections.ts';
import { stopSignal } from './stop-signal.ts';

/** A service with a health check and a stop. */
export interface StartedService {
  /** Resolves with the reason when the service fails permanently. */
  readonly failed?: Promise<Error>;
  /** Contract: rejects with the reason while the service cannot do its work. */
  ping(): Promise<void>;
  /** A notice that is no reason for a restart. */
  readonly remark?: (() => string | null) | undefined;
  stop(): Promise<void>;
  /** Ends in-flight work at once. Without it the service ends with its process. */
  abandon?(why: Error): Promise<void>;
}

/** The names of a service on this machine. */
export interface ServedAs<S> {
  /** The kind of service in `cox health`. */
  readonly name: string;
  /** The directory in which `cox health` finds it. */
  readonly stateDir: string;
  /** The name for people. */
  title(service: S): string;
}

/**
 * Starts a service, answers `cox health`, reports that it is ready, and stops it in order on a signal.
 * @param start starts the service. Its signal aborts when the service is to stop; a start that fails afterwards is no error.
 * @param broken resolves with the reason when the process cannot continue: the service is abandoned.
 * @throws the reason of a failure; CliError `nats_unreachable` if the service could not deregister from the bus.
 */
export async function serveUntilStopped<S extends StartedService>(
  { name, stateDir, title }: ServedAs<S>,
  start: (stopping: AbortSignal) => Promise<S>,
  ready: (service: S) => void,
  broken?: Promise<Error>,
): Promise<ExitCode> {
  const stop = stopSignal();
  let breaks: Error | null = null;
  const broke = (broken ?? new Promise<never>(() => undefined)).then((why) => {
    breaks = why;
    return why;
  });
  const starting = start(stop.signal).catch((error: unknown) => {
    if (stop.signal.aborted) return null;
    throw error;
  });
  const service = await Promise.race([starting, broke]);
  if (service === null) return EXIT.ok;
  if (service instanceof Error) throw service;
  const report = (problem: string) => process.stderr.write(`${problem}\n`);
  const checked = {
    // The hosts of a service change when one restarts.
    get title() {
      return title(service);
    },
    ping: () => service.ping(),
    remark: () => service.remark?.() ?? null,
  };
  const endHealth = await answerHealth(stateDir, name, checked, report);
  ready(service);
  // Without a terminal, the log reports disconnections.
  const endReports = process.stderr.isTTY
    ? reportDisconnections({ title: title(service), ping: () => service.ping(), report })
    : () => undefined;
  const failure = await Promise.race([stop.promise, broke, ...(service.failed ? [service.failed] : [])]);
  stop.release();
  endReports();
  await endHealth();
  // The process can also break during the stop.
  const stopped = breaks === null ? service.stop() : new Promise<never>(() => undefined);
  // A failed service may not stop in order either. The reason of the failure is reported.
  if (failure && breaks === null) await Promise.race([stopped.catch(() => undefined), broke]);
  else if (!failure)
    await Promise.race([stopped, broke]).catch(async (error: unknown) => {
      throw await deregistrationError(title(service), error);
    });
  const why = breaks ?? failure;
  if (!why) return EXIT.ok;
  if (breaks !== null) await service.abandon?.(breaks);
  throw why;
}

/** The error of a service that stopped after its bus had gone: it could not deregister. */
async function deregistrationError(what: string, error: unknown): Promise<unknown> {
  const { toClientError } = await import('@coxswain/client');
  // Requests in flight when the connection closed fail with the library's RequestError.
  const isGone = toClientError(error) !== null || (error instanceof Error && error.name === 'RequestError');
  if (!isGone) return error;
  const why = (error as Error).message;
  const message = `nats_unreachable: ${what} has ended, and could not deregister from the bus: ${why}`;
  return Object.assign(new CliError(EXIT.error, 'nats_unreachable', message), { cause: error });
}

/** Log lines are for programs: on a terminal they go to the file in the state directory. */
export function logTarget(): 'file' | 'stderr' {
  return process.stderr.isTTY ? 'file' : 'stderr';
}
