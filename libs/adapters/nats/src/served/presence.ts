import { type Instances, isRemovedKey, onConnectionChange } from '@coxswain/bus';
import type { Log } from '@coxswain/ports';
import { type ServedKind, STREAMS, subjects, type TenantId } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { ensureBuckets } from '../ensure-streams.ts';
import { readKeys, readRegistry } from '../read-keys.ts';
import { watchRegistry } from '../watch-registry.ts';
import type { AnnouncementOf } from './kinds.ts';
import { createKnownServices, type KnownServices } from './known-services.ts';

/** The announcements of one kind, and the live instances of each. */
export interface ServedPresence<A> extends Pick<KnownServices<A>, 'find' | 'list' | 'onChange'>, Instances {
  /**
   * Reads one announcement now, so that a session that starts sees the newest one.
   * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError.
   */
  read(tenant: TenantId, name: string): Promise<void>;
  stop(): void;
}

const CHECKED_EVERY_MS = 250;

/**
 * Watches what is announced and served on NATS. Resolves when every announcement is known.
 * @throws NatsUnavailableError, NatsRefusedError, StreamConfigMismatchError.
 */
export async function watchPresence<K extends ServedKind>(
  nc: NatsConnection,
  kind: K,
  log: Log,
): Promise<ServedPresence<AnnouncementOf[K]>> {
  await ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]);
  const known = createKnownServices(kind, log);
  let listeningSinceMs = performance.now();
  let isConnected = true;
  let isChecking = false;

  async function check(): Promise<void> {
    known.forgetRemoved();
    if (isChecking || !isConnected) return;
    isChecking = true;
    // Heartbeats may be queued for a host that was suspended. After a flush they have been received. If it fails, the
    // connection was lost: then silence proves nothing about services.
    await known.noteCeased(() => nc.flush().then(() => isConnected)).catch(() => undefined);
    isChecking = false;
  }

  const subscription = nc.subscribe(subjects.heartbeats(kind), {
    callback: (error, message) => {
      if (!error) known.hear(message.subject, message.data);
    },
  });
  const endListening = onConnectionChange(nc, {
    lost() {
      isConnected = false;
    },
    restored() {
      isConnected = true;
      listeningSinceMs = performance.now();
      known.hearAll();
    },
  });
  const timer = setInterval(() => void check(), CHECKED_EVERY_MS);
  timer.unref();
  let endWatch: () => void = () => undefined;
  const stop = () => {
    clearInterval(timer);
    endListening();
    endWatch();
    subscription.unsubscribe();
    known.stop();
  };
  try {
    for await (const stored of readRegistry(nc, subjects.announcements(kind)))
      known.take(stored, isRemovedKey(stored), false);
    endWatch = await watchRegistry(nc, `$KV.${STREAMS.registry}.${kind}.>`, log, (stored) =>
      known.take(stored, isRemovedKey(stored), true),
    );
    for await (const { subject, data } of readKeys(nc, STREAMS.hosts, subjects.heartbeats(kind)))
      known.hear(subject, data);
  } catch (error) {
    stop();
    throw error;
  }

  return {
    ...known,
    async read(tenant, name) {
      for await (const stored of readRegistry(nc, subjects.announcement(kind, tenant, name)))
        known.take(stored, isRemovedKey(stored), true);
    },
    listenedMs: () => performance.now() - listeningSinceMs,
    stop,
  };
}
