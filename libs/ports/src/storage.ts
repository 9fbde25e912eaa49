/** Snapshots, blobs and timers. */
import type { SessionRef } from '@coxswain/protocol';

/** A cached fold. Losing it costs time, never truth. */
export interface Snapshots {
  /** Keeps a snapshot; older ones may go. Bytes are opaque here. */
  put(ref: SessionRef, bytes: Uint8Array): Promise<void>;
  /** The newest snapshot, or null. */
  get(ref: SessionRef): Promise<Uint8Array | null>;
}

/** Bytes by their SHA-256, hex. */
export interface Blobs {
  /**
   * Stores bytes under their hash; storing the same again is nothing, but that they count as new again once they are older
   * than half of what blobs are kept for without a record that refers to them.
   */
  put(sha256: string, bytes: Uint8Array): Promise<void>;
  /** The bytes, or null where there are none. */
  get(sha256: string): Promise<Uint8Array | null>;
}

/** Durable timers. A due timer arrives in the session's inbox as the verb `timer`. */
export interface Timers {
  /**
   * Schedules a timer; the same id again replaces it. Resolves when the schedule is durable.
   * @param atMs milliseconds since 1970. A time that has passed fires at once.
   * @param payload what the `timer` command will carry.
   */
  schedule(ref: SessionRef, timerId: string, atMs: number, payload: Uint8Array): Promise<void>;
}
