/** The retention job as a service: purges deleted sessions, with its own key. */
import { createServiceLog, type LogTarget } from '@coxswain/adapter-log';
import { createSystemClock } from '@coxswain/adapter-memory';
import {
  answerRetention,
  awaitPermanentClose,
  connectionTo,
  connectNats,
  endOnce,
  ensureStreams,
  logConnection,
  type NamedBus,
  openNatsDeletion,
  retryWhileUnavailable,
} from '@coxswain/adapter-nats';
import { startRetentionJob } from '@coxswain/session';

/** Options of the retention service. */
export interface RetentionServiceOptions {
  readonly nats: NamedBus;
  /** Folder of the log file. */
  readonly stateDir: string;
  /** Default `file`. */
  readonly log?: LogTarget | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
}

/** A running retention job. */
export interface RetentionService {
  /** Maximum time until the records of a deleted session are purged, in milliseconds. */
  readonly recordsWithinMs: number;
  /** Resolves with the reason when the service cannot continue. */
  readonly failed: Promise<Error>;
  /** Contract: rejects while NATS does not respond, or if the last round of the job failed. */
  ping(): Promise<void>;
  /** Stops after the current purges; ends a sweep of files. */
  stop(): Promise<void>;
}

/**
 * Starts the job and resolves when hosts can query it.
 * @throws NotPermittedError for a key without permission to purge; errors of connecting to NATS.
 */
export async function startRetentionService(options: RetentionServiceOptions): Promise<RetentionService> {
  const env = options.env ?? process.env;
  const bus = connectionTo(options.nats);
  const log = createServiceLog('retention', options.log ?? 'file', options.stateDir, env, [
    bus.token,
    bus.password,
    bus.seed,
  ]);
  const nc = await connectNats({ ...bus, name: 'cox-retention' });
  try {
    logConnection(nc, log);
    await retryWhileUnavailable(() => ensureStreams(nc), log);
    const job = startRetentionJob({ ...(await openNatsDeletion(nc)), clock: createSystemClock() }, log);
    const endAnswering = answerRetention(nc, job.within);
    await nc.flush();
    log.info({ within_ms: job.within.recordsMs }, 'retention job is up');
    return {
      recordsWithinMs: job.within.recordsMs,
      failed: awaitPermanentClose(nc),
      async ping() {
        await nc.rtt();
        await job.ping();
      },
      stop: endOnce(
        () => log.info({}, 'retention job stops'),
        endAnswering,
        () => job.stop(),
        () => nc.close(),
      ),
    };
  } catch (error) {
    await nc.close();
    throw error;
  }
}
