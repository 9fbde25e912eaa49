/** The host channel on NATS. A bucket also keeps heartbeats for one second, for hosts that start later. */
import { onConnectionChange, type ValueSchema, valueIn } from '@coxswain/bus';
import type { HostChannel, Log } from '@coxswain/ports';
import { HostBeat, HostRelease, HostRing, type SessionRef, STREAMS, subjects } from '@coxswain/protocol';
import type { NatsConnection, Subscription } from '@nats-io/nats-core';
import { ensureBuckets } from './ensure-streams.ts';
import { readKeys } from './read-keys.ts';

/**
 * Delay between attempts to recreate the bucket, milliseconds: a restarted server loads its store before it answers.
 */
const RETRY_PAUSE_MS = 1_000;
const TRIES_MAX = 60;

/**
 * Creates a host's end of the host channel on this connection. `open` throws NatsUnavailableError, NatsRefusedError,
 * NatsServerTooOldError, StreamConfigMismatchError, StreamsMissingError.
 */
export function createNatsHostChannel(nc: NatsConnection, log: Log): HostChannel {
  let subscriptions: readonly Subscription[] = [];
  let endListening: () => void = () => undefined;
  let retryTimer: NodeJS.Timeout | undefined;
  /** Number of the newest chain of attempts to create the bucket. Only this one is repeated. */
  let chain = 0;

  function listen<T>(subject: string, schema: ValueSchema<T>, handle: (content: T) => void): Subscription {
    return nc.subscribe(subject, {
      callback(error, message) {
        if (error) return log.error({ subject, error }, 'heartbeats of other hosts cannot be received');
        const content = valueIn(message.data, schema);
        if (content !== null) handle(content);
      },
    });
  }

  function publish(subject: string, message: object): void {
    try {
      nc.publish(subject, JSON.stringify(message));
    } catch (error) {
      // The connection is closed. Other hosts receive no heartbeats and declare this host dead, as intended.
      log.debug({ subject, error }, 'other hosts were not notified');
    }
  }

  /**
   * Recreates the bucket after a reconnect. It is in memory, so a restart of a single server deletes it.
   * @param ofChain the chain of this attempt. The default starts a new one, which ends the one before.
   */
  function createBucket(tries = 1, ofChain = ++chain): void {
    clearTimeout(retryTimer);
    // Owned by the host channel: `close` ends the retries, and each attempt settles within the wire's timeouts.
    void ensureBuckets(nc, [STREAMS.hosts]).catch((error: Error) => {
      log.debug({ error: error.message, tries }, 'the bucket of heartbeats could not be created');
      if (subscriptions.length === 0 || ofChain !== chain || tries === TRIES_MAX) return;
      retryTimer = setTimeout(() => createBucket(tries + 1, ofChain), RETRY_PAUSE_MS);
      retryTimer.unref();
    });
  }

  function close(): void {
    endListening();
    clearTimeout(retryTimer);
    chain++;
    for (const subscription of subscriptions) subscription.unsubscribe();
    subscriptions = [];
  }

  return {
    async open(host, handlers) {
      close();
      subscriptions = [
        listen(subjects.hostBeats, HostBeat, (beat) => handlers.heartbeat(beat)),
        listen(subjects.hostRing(host), HostRing, (ring) => handlers.notified(refIn(ring), ring.seq)),
        listen(subjects.hostReleases, HostRelease, (release) => handlers.sessionLeft(refIn(release))),
      ];
      endListening = onConnectionChange(nc, { restored: () => createBucket() });
      await nc.flush();
      await ensureBuckets(nc, [STREAMS.hosts]);
      for await (const { data } of readKeys(nc, STREAMS.hosts, subjects.hostBeats)) {
        const beat = valueIn(data, HostBeat);
        if (beat) handlers.heartbeat(beat);
      }
    },
    heartbeat: (beat) => publish(subjects.hostBeat(beat.host), beat),
    notify: (host, ref, seq) => publish(subjects.hostRing(host), { v: 1, ...refMembers(ref), seq }),
    announceSessionLeft: (ref) => publish(subjects.hostReleases, { v: 1, ...refMembers(ref) }),
    caughtUp: () => nc.flush(),
    close,
  };
}

function refMembers({ tenant, sessionId }: SessionRef): object {
  return { tenant, session_id: sessionId };
}

function refIn({ tenant, session_id }: HostRelease): SessionRef {
  return { tenant, sessionId: session_id };
}
