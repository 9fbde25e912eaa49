/** A service in this process, until it is told to stop or can do no more. */
import { EXIT, type ExitCode } from '../line/cli-error.ts';
import { stopSignal } from './stop-signal.ts';

/** Starts a service, says that it is ready, and stops it in order. */
export async function serveUntilTold<S extends { readonly failed?: Promise<Error>; stop(): Promise<void> }>(
  start: () => Promise<S>,
  ready: (service: S) => void,
): Promise<ExitCode> {
  const told = stopSignal();
  const service = await start();
  ready(service);
  const failure = await Promise.race([told.promise, ...(service.failed ? [service.failed] : [])]);
  told.release();
  await service.stop();
  if (failure) throw failure;
  return EXIT.ok;
}

/** Log lines are for programs: on a terminal they go to the file in the state folder. */
export function logTarget(): 'file' | 'stderr' {
  return process.stderr.isTTY ? 'file' : 'stderr';
}
