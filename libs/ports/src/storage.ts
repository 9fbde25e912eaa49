/** Snapshots, blobs, timers, and what tenants have in the store. */
import type { SessionRef, TenantId } from '@coxswain/protocol';

/** A cached fold. Losing it costs time, never truth. */
export interface Snapshots {
  /**
   * Keeps a snapshot; older ones may go. Bytes are opaque here.
   * @param summary is kept with it, for {@link Snapshots.summaries}.
   */
  put(ref: SessionRef, bytes: Uint8Array, summary?: SessionSummary): Promise<void>;
  /** The newest snapshot, or null. */
  get(ref: SessionRef): Promise<Uint8Array | null>;
  /** The summary of each session of a partition, as its newest snapshot has it; those without one are left out. */
  summaries(partition: number): Promise<readonly SummarizedSession[]>;
}

/** What metrics count of a session. */
export interface SessionSummary {
  /** Its outermost state. */
  readonly state: string;
  /** Calls that wait for a person. */
  readonly approvals: number;
  /** Since when the first of them has waited, in milliseconds since 1970; null where none waits. */
  readonly oldestApprovalMs: number | null;
}

/** A session and its summary. */
export interface SummarizedSession {
  readonly ref: SessionRef;
  readonly summary: SessionSummary;
}

/** Bytes by their SHA-256, hex. */
export interface Blobs {
  /**
   * Stores bytes under their hash. Storing the same bytes again writes nothing while they are young.
   * Once they are older than half the time that unreferenced blobs are kept, they count as new again.
   */
  put(sha256: string, bytes: Uint8Array): Promise<void>;
  /** The bytes, or null where there are none. */
  get(sha256: string): Promise<Uint8Array | null>;
}

/** Durable timers. A due timer arrives in the session's inbox as the verb `timer`. */
export interface Timers {
  /**
   * Schedules a timer; the same id again replaces it. Resolves when the schedule is durable.
   * @param atMs milliseconds since 1970 of the store's clock. A time that has passed fires at once.
   * @param payload what the `timer` command will carry.
   */
  schedule(ref: SessionRef, timerId: string, atMs: number, payload: Uint8Array): Promise<void>;
}

/** A measurement of one tenant. */
export interface MeasuredUsage {
  /** Sessions with a journal. A deleted session does not count once its records are purged. */
  readonly sessions: number;
  /** Bytes of these journals; an estimate where several tenants share a store. */
  readonly storedBytes: number;
}

/** Measures tenants in the background. */
export interface TenantUsage {
  /**
   * The newest measurement, the same object until there is a newer one; null before the first. Contract: returns at once. A
   * tenant is measured from the first question on.
   */
  of(tenant: TenantId): MeasuredUsage | null;
}
