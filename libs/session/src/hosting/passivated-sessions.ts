/**
 * The sessions of this host's partitions that are not in memory, counted for metrics.
 *
 * PASSIVATED-1  A session is counted by the host whose partition it is in, and by no other: in memory or here, never in both.
 * PASSIVATED-2  The host that passivates a session notes it here. What others passivated before is read from the headers of snapshots: a partition
 *     when it comes to this host, and again in turn, as a summary may have been lost with the host that had it.
 * PASSIVATED-3  One partition is read at a time, and never more often than {@link READ_APART_MS} once each was read.
 */
import type { Clock, Log, SessionSummary, Snapshots } from '@coxswain/ports';
import { partitionOf, type SessionRef, sessionKey } from '@coxswain/protocol';

/** How long after one partition the next is read again. */
const READ_APART_MS = 60_000;
/** How soon a partition is read again that could not be read. */
const RETRY_MS = 5_000;

/** What it needs of its host. */
export interface PassivatedPorts {
  readonly snapshots: Pick<Snapshots, 'summaries'>;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly log: Log;
  /** Whether a session is in this host's memory. */
  isHere(ref: SessionRef): boolean;
}

type Table = Map<string, SessionSummary>;

/** See the top of the file. */
export class PassivatedSessions {
  readonly #ports: PassivatedPorts;
  readonly #tables = new Map<number, Table>();
  /** Partitions that were not read yet, the first to be read first. */
  readonly #unread = new Set<number>();
  /** Sessions of the partition that is being read, which have come or left since: what the store says of them is old. */
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

  /** A session has left memory and waits here. */
  left(ref: SessionRef, summary: SessionSummary): void {
    this.#changed(ref);
    this.#tables.get(partitionOf(ref.sessionId))?.set(sessionKey(ref), summary);
  }

  /** A session is in memory, or has gone to another host. */
  came(ref: SessionRef): void {
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
    // The one that was read longest ago is the first.
    return this.#tables.keys().next().value;
  }

  /** @returns whether it could be read. */
  async #read(partition: number): Promise<boolean> {
    const changed = new Set<string>();
    this.#reading = { partition, changed };
    try {
      const found = await this.#ports.snapshots.summaries(partition);
      const before = this.#tables.get(partition);
      // It went to another host meanwhile.
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

/** Most sessions have no approvals, and there are few states: one object stands for all of a state. */
const PLAIN = new Map<string, SessionSummary>();
const PLAIN_MAX = 64;

function kept(summary: SessionSummary): SessionSummary {
  if (summary.approvals > 0) return summary;
  const known = PLAIN.get(summary.state);
  if (known) return known;
  if (PLAIN.size < PLAIN_MAX) PLAIN.set(summary.state, summary);
  return summary;
}
