/** The line between hosts on the bus. Beats lie for a moment in a bucket, for hosts that come later. */
import type { HostLine, HostLineHandlers, Log } from '@coxswain/ports';
import { HostBeat, HostRelease, HostRing, type SessionRef, STREAMS, subjects } from '@coxswain/protocol';
import type { NatsConnection, Subscription } from '@nats-io/nats-core';
import { createStreamReader } from './stream-reader.ts';
import { wireOf } from './wire.ts';

interface Schema<T> {
  safeParse(value: unknown): { readonly data?: T | undefined };
}

const PAGE = 256;
/** Beats go on while they are read: somewhere reading has to end. */
const PAGES_MAX = 64;

/** A host's end of the line on this connection. `open` throws NatsUnavailableError, NatsRefusedError. */
export function createNatsHostLine(nc: NatsConnection, log: Log): HostLine {
  let subscriptions: readonly Subscription[] = [];

  function listen<T>(subject: string, schema: Schema<T>, handle: (said: T) => void): Subscription {
    return nc.subscribe(subject, {
      callback(error, message) {
        if (error) return log.error({ subject, error }, 'other hosts cannot be heard');
        const said = parsed(message.data, schema);
        if (said !== null) handle(said);
      },
    });
  }

  function say(subject: string, what: object): void {
    try {
      nc.publish(subject, JSON.stringify(what));
    } catch (error) {
      // The connection is gone: nobody hears this host, which is what the others take it for.
      log.debug({ subject, error }, 'other hosts were not told');
    }
  }

  function close(): void {
    for (const subscription of subscriptions) subscription.unsubscribe();
    subscriptions = [];
  }

  return {
    async open(host, handlers) {
      close();
      subscriptions = [
        listen(subjects.hostBeats, HostBeat, (beat) => handlers.beat(beat)),
        listen(subjects.hostRing(host), HostRing, (ring) => handlers.rung(refIn(ring), ring.seq)),
        listen(subjects.hostReleases, HostRelease, (release) => handlers.released(refIn(release))),
      ];
      await nc.flush();
      await readBeats(nc, handlers);
    },
    beat: (beat) => say(subjects.hostBeat(beat.host), beat),
    ring: (host, ref, seq) => say(subjects.hostRing(host), { v: 1, ...said(ref), seq }),
    release: (ref) => say(subjects.hostReleases, { v: 1, ...said(ref) }),
    caughtUp: () => nc.flush(),
    close,
  };
}

async function readBeats(nc: NatsConnection, handlers: HostLineHandlers): Promise<void> {
  const reader = createStreamReader(wireOf(nc), `KV_${STREAMS.hosts}`);
  let from = 1;
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const page = await reader.batch(subjects.hostBeats, from, PAGE);
    for (const { data } of page) {
      const beat = parsed(data, HostBeat);
      if (beat) handlers.beat(beat);
    }
    const last = page.at(-1);
    if (!last) return;
    from = last.seq + 1;
  }
}

function said({ tenant, sessionId }: SessionRef): object {
  return { tenant, session_id: sessionId };
}

function refIn({ tenant, session_id }: HostRelease): SessionRef {
  return { tenant, sessionId: session_id };
}

/** Reads what stands in a message or a bucket; null where it is somebody else's. */
function parsed<T>(data: Uint8Array, schema: Schema<T>): T | null {
  try {
    return schema.safeParse(JSON.parse(new TextDecoder().decode(data))).data ?? null;
  } catch {
    // No JSON.
    return null;
  }
}
