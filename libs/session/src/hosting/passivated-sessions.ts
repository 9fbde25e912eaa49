/**
 * Counts the sessions of this host's partitions that are not in memory, for metrics.
 *
 * PASSIVATED-1  A session is counted only by the host of its partition: in memory or here, never in both.
 * PASSIVATED-2  The host that passivates a session adds it here. Sessions passivated by others are read from the
 *     headers of snapshots: when a partition arrives, and again in turn, because a summary may have been lost with its
 *     host.
 * PASSIVATED-3  One partition is read at a time, and after the first pass at most one every {@link READ_APART_MS}.
 */
import type { Clock, Log, SessionSummary, Snapshots } from '@coxswain/ports';
import { partitionOf, type SessionRef, sessionKey } from '@coxswain/protocol';

/** Pause between the reads of two partitions. */
const READ_APART_MS = 60_000;
/** Delay before a failed read is repeated. */
const RETRY_MS = 5_000;

/** The part of its host that it needs. */
export interface PassivatedPorts {
  readonly snapshots: Pick<Snapshots, 'summaries'>;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly log: Log;
  /** Whether a session is in this host's memory. */
  isHere(ref: SessionRef): boolean;
}

type Table = Map<string, SessionSummary>;

/** The summaries of passivated sessions, by partition. */
export class PassivatedSessions {
  readonly #ports: PassivatedPorts;
  readonly #tables = new Map<number, Table>();
  /** Unread partitions, in their order. */
  readonly #unread = new Set<number>();
  /** Sessions of the current partition that arrived or left during the read: their stored summary is outdated. */
  #reading: { readonly partition: number; readonly changed: Set<string> } | null = null;
  #woken = new AbortController();
  #isRunning = false;

  constructor(ports: PassivatedPorts) {
    this.#ports = ports;
  }

  /** Counts the sessions of exactly these partitions from now on. */
  serve(partitions: ReadonlySet<number>): void {
    for (const partition of this.#tables.keys()) if (!partitions.has(partition)) this.#tables.delete(partition);
    for (const partition of this.#unread) if (!partitions.has(partition)) this.#unread.delete(partition);
    for (const partition of partitions) {
      if (this.#tables.has(partition)) continue;
      this.#tables.set(partition, new Map());
      this.#unread.add(partition);
    }
    if (this.#unread.size > 0) this.#woken.abort();
  }

  /** Reads partitions, until the signal aborts. Contract: does not reject. */
  async run(ended: AbortSignal): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    while (!ended.aborted) {
      const partition = this.#next();
      const isRead = partition === undefined || (await this.#read(partition));
      if (isRead && this.#unread.size > 0) continue;
      this.#woken = new AbortController();
      await this.#ports.clock.sleep(isRead ? READ_APART_MS : RETRY_MS, AbortSignal.any([ended, this.#woken.signal]));
    }
  }

  /** A session has left memory and stays in this host's partition. */
  left(ref: SessionRef, summary: SessionSummary): void {
    this.#changed(ref);
    this.#tables.get(partitionOf(ref.sessionId))?.set(sessionKey(ref), summary);
  }

  /** A session is in memory, or has moved to another host. */
  came(ref: SessionRef): void {
    this.#changed(ref);
    this.#tables.get(partitionOf(ref.sessionId))?.delete(sessionKey(ref));
  }

  /** The summaries of all counted sessions. */
  *summaries(): Generator<SessionSummary> {
    for (const table of this.#tables.values()) yield* table.values();
  }

  #changed(ref: SessionRef): void {
    if (this.#reading?.partition === partitionOf(ref.sessionId)) this.#reading.changed.add(sessionKey(ref));
  }

  #next(): number | undefined {
    const [unread] = this.#unread;
    if (unread !== undefined) return unread;
    // The first key is the one with the oldest read.
    return this.#tables.keys().next().value;
  }

  /** @returns whether the partition could be read. */
  async #read(partition: number): Promise<boolean> {
    const changed = new Set<string>();
    this.#reading = { partition, changed };
    try {
      const found = await this.#ports.snapshots.summaries(partition);
      const before = this.#tables.get(partition);
      // The partition moved to another host meanwhile.
      if (!before) return true;
      const table: Table = new Map();
      for (const { ref, summary } of found)
        if (!changed.has(sessionKey(ref)) && !this.#ports.isHere(ref)) table.set(sessionKey(ref), kept(summary));
      for (const [key, summary] of before) if (changed.has(key)) table.set(key, summary);
      this.#tables.delete(partition);
      this.#tables.set(partition, table);
      this.#unread.delete(partition);
      return true;
    } catch (error) {
      this.#ports.log.debug({ partition, error: (error as Error).message }, 'sessions cannot be counted now');
      return false;
    } finally {
      this.#reading = null;
    }
  }
}

/** One shared object for each state: most sessions have no approvals, and there are few states. */
const PLAIN = new Map<string, SessionSummary>();
const PLAIN_MAX = 64;

function kept(summary: SessionSummary): SessionSummary {
  if (summary.approvals > 0) return summary;
  const known = PLAIN.get(summary.state);
  if (known) return known;
  if (PLAIN.size < PLAIN_MAX) PLAIN.set(summary.state, summary);
  return summary;
}
