/** A service in this process, until it is told to stop or can do no more. */
import { EXIT, type ExitCode } from '../line/cli-error.ts';
import { answerHealth } from './health-socket.ts';
import { stopSignal } from './stop-signal.ts';

/** A service that can be asked how it is, and stopped. */
export interface StartedService {
  /** Resolves where it can do no more, with why. */
  readonly failed?: Promise<Error>;
  /** Contract: rejects, with why, while the service cannot do its work. */
  ping(): Promise<void>;
  stop(): Promise<void>;
}

/** As what a service is known on this machine. */
export interface ServedAs<S> {
  /** Its first word in `cox health`. */
  readonly name: string;
  /** Where `cox health` finds it. */
  readonly stateDir: string;
  /** What it is, for people. */
  title(service: S): string;
}

/** Starts a service, answers `cox health`, says that it is ready, and stops it in order. */
export async function serveUntilTold<S extends StartedService>(
  { name, stateDir, title }: ServedAs<S>,
  start: () => Promise<S>,
  ready: (service: S) => void,
): Promise<ExitCode> {
  const told = stopSignal();
  const service = await start();
  const tell = (problem: string) => process.stderr.write(`${problem}\n`);
  const endHealth = await answerHealth(stateDir, name, { title: title(service), ping: () => service.ping() }, tell);
  ready(service);
  const failure = await Promise.race([told.promise, ...(service.failed ? [service.failed] : [])]);
  told.release();
  await endHealth();
  if (failure) {
    // What has failed may not end in order either; why it failed is what counts.
    await service.stop().catch(() => undefined);
    throw failure;
  }
  await service.stop();
  return EXIT.ok;
}

/** Log lines are for programs: on a terminal they go to the file in the state folder. */
export function logTarget(): 'file' | 'stderr' {
  return process.stderr.isTTY ? 'file' : 'stderr';
}
