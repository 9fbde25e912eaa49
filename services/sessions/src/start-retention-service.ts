/** The retention job as a service: purges what is deleted, with a key of its own. */
import { createServiceLog, type LogTarget } from '@coxswain/adapter-log';
import { createSystemClock } from '@coxswain/adapter-memory';
import {
  answerRetention,
  connectionTo,
  connectNats,
  endOnce,
  ensureStreams,
  logConnection,
  lostForGood,
  type NamedBus,
  openNatsDeletion,
  whenAnswered,
} from '@coxswain/adapter-nats';
import { startRetentionJob } from '@coxswain/session';

/** What the service is started with. */
export interface RetentionServiceOptions {
  readonly nats: NamedBus;
  /** Where the log file lies. */
  readonly stateDir: string;
  /** Default `file`. */
  readonly log?: LogTarget | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
}

/** A retention job that runs on a bus. */
export interface RetentionService {
  /** Within what time a deleted session's records are purged, milliseconds. */
  readonly recordsWithinMs: number;
  /** Resolves where the service can do no more, with the reason. */
  readonly failed: Promise<Error>;
  /** Contract: rejects while the bus does not answer, or the last look has failed. */
  ping(): Promise<void>;
  /** Stops behind the purge at hand. */
  stop(): Promise<void>;
}

/**
 * Starts the job and resolves when hosts can ask it.
 * @throws NotPermittedError for a key that may not purge; what connecting throws.
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
    await whenAnswered(() => ensureStreams(nc), log);
    const job = startRetentionJob({ ...(await openNatsDeletion(nc)), clock: createSystemClock() }, log);
    const endAnswering = answerRetention(nc, job.within);
    await nc.flush();
    log.info({ within_ms: job.within.recordsMs }, 'retention job is up');
    return {
      recordsWithinMs: job.within.recordsMs,
      failed: lostForGood(nc),
      async ping() {
        await nc.rtt();
        await job.ping();
      },
      stop: endOnce(async () => {
        log.info({}, 'retention job stops');
        endAnswering();
        await job.stop();
        await nc.close();
      }),
    };
  } catch (error) {
    await nc.close();
    throw error;
  }
}
