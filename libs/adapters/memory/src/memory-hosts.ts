/** The host channel and the notes of active sessions, in memory. */
import type { ActiveSession, ActiveSessions, Clock, HostChannel, HostChannelHandlers } from '@coxswain/ports';
import { type HostBeat, partitionOf, subjects } from '@coxswain/protocol';
import { createListeners } from './listeners.ts';

type Said = (handlers: HostChannelHandlers) => void;

const ALL = 'all';
/** How long a heartbeat is kept for hosts that join later, milliseconds. */
const BEAT_KEPT_MS = 1_000;

/**
 * Creates the shared host channel.
 * @returns a function that creates one host's end of it. Each end also receives its own broadcasts.
 */
export function createMemoryHostChannels(clock: Pick<Clock, 'monotonicMs'>): () => HostChannel {
  const listeners = createListeners<Said>();
  const newest = new Map<string, { readonly beat: HostBeat; readonly atMs: number }>();
  return () => {
    let close: () => void = () => undefined;
    return {
      async open(host, handlers) {
        close();
        const ends = [ALL, host].map((topic) => listeners.add(topic, (said) => said(handlers)));
        close = () => {
          for (const end of ends) end();
        };
        for (const { beat, atMs } of newest.values()) {
          if (clock.monotonicMs() - atMs > BEAT_KEPT_MS) newest.delete(beat.host);
          else handlers.heartbeat(beat);
        }
      },
      heartbeat(beat) {
        newest.set(beat.host, { beat, atMs: clock.monotonicMs() });
        listeners.tell(ALL, (handlers) => handlers.heartbeat(beat));
      },
      notify: (host, ref, seq) => listeners.tell(host, (handlers) => handlers.notified(ref, seq)),
      announceSessionLeft: (ref) => listeners.tell(ALL, (handlers) => handlers.sessionLeft(ref)),
      caughtUp: async () => undefined,
      close: () => close(),
    };
  };
}

/** Creates an empty set of notes, one per active session. */
export function createMemoryActiveSessions(assertOpen: () => void): ActiveSessions {
  const notes = new Map<string, ActiveSession>();
  let revision = 0;
  return {
    async note(ref, host) {
      assertOpen();
      notes.set(subjects.activeSession(ref), { ref, host, revision: ++revision });
      return revision;
    },
    async forget(ref, noted) {
      assertOpen();
      const key = subjects.activeSession(ref);
      if (notes.get(key)?.revision === noted) notes.delete(key);
    },
    async list(partition) {
      assertOpen();
      return [...notes.values()].filter(({ ref }) => partitionOf(ref.sessionId) === partition);
    },
  };
}
