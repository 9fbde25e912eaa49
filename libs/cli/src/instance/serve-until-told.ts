/** A service in this process, until it is told to stop or can do no more. */
import { CliError, EXIT, type ExitCode } from '../line/cli-error.ts';
import { answerHealth } from './health-socket.ts';
import { stopSignal } from './stop-signal.ts';
import { tellAway } from './tell-away.ts';

/** A service that can be asked how it is, and stopped. */
export interface StartedService {
  /** Resolves where it can do no more, with why. */
  readonly failed?: Promise<Error>;
  /** Contract: rejects, with why, while the service cannot do its work. */
  ping(): Promise<void>;
  /** Something to know that is no reason to restart it. */
  readonly remark?: (() => string | null) | undefined;
  stop(): Promise<void>;
  /** Ends at once what cannot go on. Without it the service ends with its process. */
  abandon?(why: Error): Promise<void>;
}

/** The name of a service on this machine. */
export interface ServedAs<S> {
  /** Its first word in `cox health`. */
  readonly name: string;
  /** Where `cox health` finds it. */
  readonly stateDir: string;
  /** What it is, for people. */
  title(service: S): string;
}

/**
 * Starts a service, answers `cox health`, says that it is ready, and stops it in order.
 * @param broken resolves where the process cannot go on, with what is told then: the service is abandoned.
 */
export async function serveUntilTold<S extends StartedService>(
  { name, stateDir, title }: ServedAs<S>,
  start: () => Promise<S>,
  ready: (service: S) => void,
  broken?: Promise<Error>,
): Promise<ExitCode> {
  const told = stopSignal();
  let breaks: Error | null = null;
  const broke = (broken ?? new Promise<never>(() => undefined)).then((why) => {
    breaks = why;
    return why;
  });
  const service = await Promise.race([start(), broke]);
  if (service instanceof Error) throw service;
  const tell = (problem: string) => process.stderr.write(`${problem}\n`);
  const asked = {
    // The hosts of a service change when one restarts.
    get title() {
      return title(service);
    },
    ping: () => service.ping(),
    remark: () => service.remark?.() ?? null,
  };
  const endHealth = await answerHealth(stateDir, name, asked, tell);
  ready(service);
  // Elsewhere the log says it.
  const endTelling = process.stderr.isTTY
    ? tellAway({ title: title(service), ping: () => service.ping(), tell })
    : () => undefined;
  const failure = await Promise.race([told.promise, broke, ...(service.failed ? [service.failed] : [])]);
  told.release();
  endTelling();
  await endHealth();
  // Also where it breaks while it stops.
  const stopped = breaks === null ? service.stop() : new Promise<never>(() => undefined);
  // What has failed may not end in order either; why it failed is what counts.
  if (failure && breaks === null) await Promise.race([stopped.catch(() => undefined), broke]);
  else if (!failure)
    await Promise.race([stopped, broke]).catch(async (error: unknown) => {
      throw await untold(title(service), error);
    });
  const why = breaks ?? failure;
  if (!why) return EXIT.ok;
  if (breaks !== null) await service.abandon?.(breaks);
  throw why;
}

/** Of a service whose bus has gone: it ends as it was told to, and nobody there hears of it. */
async function untold(what: string, error: unknown): Promise<unknown> {
  const { asTrouble } = await import('@coxswain/client');
  // What was under way when the connection went ends with the library's RequestError.
  const isGone = asTrouble(error) !== null || (error instanceof Error && error.name === 'RequestError');
  if (!isGone) return error;
  const why = (error as Error).message;
  const message = `nats_unreachable: ${what} has ended, and could not deregister from the bus: ${why}`;
  return Object.assign(new CliError(EXIT.error, 'nats_unreachable', message), { cause: error });
}

/** Log lines are for programs: on a terminal they go to the file in the state folder. */
export function logTarget(): 'file' | 'stderr' {
  return process.stderr.isTTY ? 'file' : 'stderr';
}
