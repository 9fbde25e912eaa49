/**
 * Compares journals with the notes of active sessions. A note may be lost with a replica, and a session whose host has
 * died has no other sign of its work. So the host reads the newest record of each session in its partitions that has no
 * note, and claims the sessions with work.
 */
import type { ActiveSession, Clock, Log } from '@coxswain/ports';
import { partitionOf, type SessionRef, sessionKey } from '@coxswain/protocol';
import type { HostState } from './host-state.ts';

/** The minimum time between two comparisons of a partition. Partitions take turns: 100,000 sessions take about an hour. */
const EVERY_MS = 10 * 60_000;
/** The pause between two partitions, and between two groups of sessions. */
const PAUSE_MS = 250;
/** The number of newest records that are read at a time. */
const READ_AT_ONCE = 8;

/** The ports of the comparison. */
export interface ComparisonPorts {
  readonly active: { list(partition: number): Promise<readonly ActiveSession[]> };
  readonly journal: { sessionsOf(partition: number): AsyncIterable<SessionRef> };
  readonly clock: Clock;
  readonly log: Log;
}

/** The host whose partitions are compared. */
export interface ComparedHost {
  /** The host's partitions now. */
  partitions(): ReadonlySet<number>;
  /** Whether a session is the host's to claim: in its partitions, not in its memory, and of no other host. */
  isFree(ref: SessionRef): boolean;
  /** Whether a session has work; false for a damaged or deleted session. Rejects where the store cannot be read. */
  hasWork(ref: SessionRef): Promise<boolean>;
  claim(ref: SessionRef): void;
}

/** Compares the partitions that are due, and claims sessions that have work and no note. */
export class NoteComparison {
  readonly #ports: ComparisonPorts;
  readonly #host: ComparedHost;
  readonly #state: HostState;
  /** When each partition was compared, on the monotonic clock. */
  readonly #comparedMs = new Map<number, number>();

  constructor(ports: ComparisonPorts, host: ComparedHost, state: HostState) {
    this.#ports = ports;
    this.#host = host;
    this.#state = state;
  }

  /** The partition is another host's now. If it comes back, its comparison is due at once. */
  forget(partition: number): void {
    this.#comparedMs.delete(partition);
  }

  /** Compares all partitions that are due, until the host leaves. Rejects with the first failure, after all have been tried. */
  async compareDue(): Promise<void> {
    const { clock } = this.#ports;
    const dueMs = clock.monotonicMs() - EVERY_MS;
    const isDue = (p: number) => (this.#comparedMs.get(p) ?? Number.NEGATIVE_INFINITY) <= dueMs;
    const failures: unknown[] = [];
    for (const p of [...this.#host.partitions()].filter(isDue)) {
      if (this.#state.isLeaving || !this.#host.partitions().has(p)) continue;
      // A stream holds a few partitions. While one stream is unavailable, the partitions of the others are compared.
      try {
        await this.#compare(p);
        this.#comparedMs.set(p, clock.monotonicMs());
      } catch (error) {
        failures.push(error);
      }
      await clock.sleep(PAUSE_MS, this.#state.ended);
    }
    if (failures.length > 0) throw failures[0];
  }

  async #compare(p: number): Promise<void> {
    const refs: SessionRef[] = [];
    for await (const ref of this.#ports.journal.sessionsOf(p)) refs.push(ref);
    // Read after the journals, because a note precedes the first record of its work.
    const noted = await this.#notedIn(p);
    const unnoted = refs.filter((ref) => !noted.has(sessionKey(ref)) && this.#host.isFree(ref));
    for (let at = 0; at < unnoted.length && !this.#state.isLeaving; at += READ_AT_ONCE) {
      if (at > 0) await this.#ports.clock.sleep(PAUSE_MS, this.#state.ended);
      const some = unnoted.slice(at, at + READ_AT_ONCE);
      const working = await Promise.all(some.map((ref) => this.#host.hasWork(ref)));
      for (const ref of some.filter((_, index) => working[index])) await this.#claimUnnoted(ref);
    }
  }

  /** Claims a session, unless a host has noted it since the notes were read. */
  async #claimUnnoted(ref: SessionRef): Promise<void> {
    const noted = await this.#notedIn(partitionOf(ref.sessionId));
    if (noted.has(sessionKey(ref)) || !this.#host.isFree(ref)) return;
    this.#ports.log.warn(
      { session_id: ref.sessionId },
      'a session has work but no active-session note: this host claims it',
    );
    this.#host.claim(ref);
  }

  async #notedIn(p: number): Promise<ReadonlySet<string>> {
    return new Set((await this.#ports.active.list(p)).map(({ ref }) => sessionKey(ref)));
  }
}
