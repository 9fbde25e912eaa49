/** Ports of storage: snapshots, blobs, timers, and the usage of tenants. */
import type { SessionRef, TenantId } from '@coxswain/protocol';

/** Snapshots: cached states of sessions. The loss of a snapshot costs time, and loses no state. */
export interface Snapshots {
  /**
   * Stores a snapshot. The store may drop older ones. The port does not interpret the bytes.
   * @param summary stored with the snapshot, for {@link Snapshots.summaries}.
   */
  put(ref: SessionRef, bytes: Uint8Array, summary?: SessionSummary): Promise<void>;
  /** The newest snapshot, or null. */
  get(ref: SessionRef): Promise<Uint8Array | null>;
  /** The summaries of a partition's sessions, from their newest snapshots. Sessions without a summary are left out. */
  summaries(partition: number): Promise<readonly SummarizedSession[]>;
}

/** The properties of a session that metrics count. */
export interface SessionSummary {
  /** The outermost state of its state machine. */
  readonly state: string;
  /** The number of calls that wait for a human-in-the-loop approval. */
  readonly approvals: number;
  /** When the oldest of these calls started to wait, in milliseconds since 1970; null without such a call. */
  readonly oldestApprovalMs: number | null;
}

/** A session and its summary. */
export interface SummarizedSession {
  readonly ref: SessionRef;
  readonly summary: SessionSummary;
}

/** Blobs: bytes addressed by their SHA-256 hash in hex. */
export interface Blobs {
  /**
   * Stores bytes under their hash. If the bytes are stored already and recent, nothing is written. Once they are older
   * than half of the time for which unreferenced blobs are kept, the call renews them.
   */
  put(sha256: string, bytes: Uint8Array): Promise<void>;
  /** The bytes, or null for an unknown hash. */
  get(sha256: string): Promise<Uint8Array | null>;
}

/** Durable timers. A due timer arrives in the session's inbox as a command with the verb `timer`. */
export interface Timers {
  /**
   * Schedules a timer. The same id again replaces it. Resolves once the schedule is durable.
   * @param atMs milliseconds since 1970, by the store's clock. A past time fires immediately.
   * @param payload the body of the `timer` command.
   */
  schedule(ref: SessionRef, timerId: string, atMs: number, payload: Uint8Array): Promise<void>;
}

/** The measured usage of one tenant. */
export interface MeasuredUsage {
  /** Sessions with a journal. A deleted session does not count once its records are purged. */
  readonly sessions: number;
  /** The size of these journals in bytes. An estimate if several tenants share a store. */
  readonly storedBytes: number;
}

/** Measures the usage of tenants in the background. */
export interface TenantUsage {
  /**
   * The newest measurement; the same object until there is a newer one. Null before the first measurement of a tenant.
   * Contract: returns at once. The first call starts the measurements of a tenant.
   */
  of(tenant: TenantId): MeasuredUsage | null;
}
