/**
 * The sessions of this host's partitions that are not in memory, counted for metrics.
 *
 * PASSIVATED-1  Only the host of a partition counts its sessions: each in memory or in this count, never in both.
 * PASSIVATED-2  The host that passivates a session adds it to this count. The sessions of earlier hosts are read from
 *               the headers of snapshots: when a partition comes to this host, and again later, because an earlier host
 *               may store a snapshot after the first read.
 * PASSIVATED-3  One partition is read at a time. Once all were read, they are read again in turn, one every
 *               {@link READ_APART_MS}.
 */
import type { Clock, Log, SessionSummary, Snapshots } from '@coxswain/ports';
import { partitionOf, type SessionRef, sessionKey } from '@coxswain/protocol';

/** The time between two reads, once all partitions were read. */
const READ_APART_MS = 60_000;
/** The time before a failed read is retried. */
const RETRY_MS = 5_000;

/** The ports of the count. */
export interface PassivatedPorts {
  readonly snapshots: Pick<Snapshots, 'summaries'>;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly log: Log;
  /** Whether a session is in this host's memory. */
  isHere(ref: SessionRef): boolean;
}

type Table = Map<string, SessionSummary>;

/** The count of the sessions that are not in memory. */
export class PassivatedCount {
  readonly #ports: PassivatedPorts;
  readonly #tables = new Map<number, Table>();
  /** Partitions that were not read yet, in order. */
  readonly #unread = new Set<number>();
  /** The partition that is being read. `changed`: sessions that came or left meanwhile: what was read is outdated. */
  #reading: { readonly partition: number; readonly changed: Set<string> } | null = null;
  #woken = new AbortController();
  #isRunning = false;

  constructor(ports: PassivatedPorts) {
    this.#ports = ports;
  }

  /** Counts the sessions of these partitions from now on, and of no others. */
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

  /** Reads partitions, until the signal aborts. A second call returns at once. Contract: does not reject. */
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

  /** Adds a session that is not in memory: a runner has passivated it, or a claim found no open effects. */
  add(ref: SessionRef, summary: SessionSummary): void {
    this.#changed(ref);
    this.#tables.get(partitionOf(ref.sessionId))?.set(sessionKey(ref), summary);
  }

  /** Removes a session that is in memory now. */
  remove(ref: SessionRef): void {
    this.#changed(ref);
    this.#tables.get(partitionOf(ref.sessionId))?.delete(sessionKey(ref));
  }

  /** The summaries of all sessions that are counted here. */
  *summaries(): Generator<SessionSummary> {
    for (const table of this.#tables.values()) yield* table.values();
  }

  #changed(ref: SessionRef): void {
    if (this.#reading?.partition === partitionOf(ref.sessionId)) this.#reading.changed.add(sessionKey(ref));
  }

  #next(): number | undefined {
    const [unread] = this.#unread;
    if (unread !== undefined) return unread;
    // The partition that was read longest ago.
    return this.#tables.keys().next().value;
  }

  /** @returns whether the read succeeded. */
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

/** One shared object for all sessions of a state without approvals, to save memory. */
const PLAIN = new Map<string, SessionSummary>();
const PLAIN_MAX = 64;

function kept(summary: SessionSummary): SessionSummary {
  if (summary.approvals > 0) return summary;
  const known = PLAIN.get(summary.state);
  if (known) return known;
  if (PLAIN.size < PLAIN_MAX) PLAIN.set(summary.state, summary);
  return summary;
}
