/**
 * Compares journals with the notes of active sessions. A note may be lost with a replica, and a session whose host has
 * died has no other sign of its work. So the host reads the newest record of each session in its partitions that has no
 * note, and claims the sessions with open effects.
 *
 * A passivated session with a timer has no note either, although none was lost. The host cannot know from the record
 * whether the store still has the timer. So it claims such a session, too, which stores the timer again. While the newest
 * record stays the same, it repeats the claim only once a day.
 */
import type { ActiveSession, Clock, Log } from '@coxswain/ports';
import { partitionOf, type SessionRef, sessionKey } from '@coxswain/protocol';
import type { HostState } from './host-state.ts';

/** The minimum time between two comparisons of a partition. Partitions take turns: 100,000 sessions take about an hour. */
const EVERY_MS = 10 * 60_000;
/** The pause between two partitions, and between two groups of sessions. */
const PAUSE_MS = 250;
/**
 * After this time a session is claimed again although its newest record is the same: the store may have lost its timer
 * since, and nothing else would ever wake it.
 */
const CLAIMED_AGAIN_MS = 24 * 3_600_000;
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
  /**
   * The number of the newest record, if it has open effects; otherwise null, also for a damaged or deleted session.
   * Rejects where the store cannot be read.
   */
  openWorkAt(ref: SessionRef): Promise<number | null>;
  claim(ref: SessionRef): void;
}

/** The claim of a session by its newest record. */
interface Claimed {
  /** The number of that record. */
  readonly n: number;
  /** When it was claimed, on the monotonic clock. */
  readonly atMs: number;
}

/** Compares the partitions that are due, and claims sessions that have work and no note. */
export class NoteComparison {
  readonly #ports: ComparisonPorts;
  readonly #host: ComparedHost;
  readonly #state: HostState;
  /** When each partition was compared, on the monotonic clock. */
  readonly #comparedMs = new Map<number, number>();
  /**
   * The sessions of each partition that the last comparison found with open effects and without a note, with their
   * claims. At most as many as the partition has sessions.
   */
  readonly #claimed = new Map<number, Map<string, Claimed>>();

  constructor(ports: ComparisonPorts, host: ComparedHost, state: HostState) {
    this.#ports = ports;
    this.#host = host;
    this.#state = state;
  }

  /** Makes the comparison of a partition due at once, because the partition was assigned to this host. */
  makeDue(partition: number): void {
    this.#comparedMs.delete(partition);
    this.#claimed.delete(partition);
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
      // Due until the end of its comparison, and also after it if `makeDue` has removed the entry meanwhile.
      this.#comparedMs.set(p, Number.NEGATIVE_INFINITY);
      try {
        await this.#compare(p);
        if (this.#comparedMs.has(p)) this.#comparedMs.set(p, clock.monotonicMs());
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
    const before = this.#claimed.get(p);
    // If the partition leaves and comes back meanwhile, `makeDue` has removed this map: its claims may not have started.
    const claimed = new Map<string, Claimed>();
    this.#claimed.set(p, claimed);
    for (let at = 0; at < unnoted.length && !this.#state.isLeaving; at += READ_AT_ONCE) {
      if (at > 0) await this.#ports.clock.sleep(PAUSE_MS, this.#state.ended);
      const some = unnoted.slice(at, at + READ_AT_ONCE);
      const newest = await Promise.all(some.map((ref) => this.#host.openWorkAt(ref)));
      for (const [index, ref] of some.entries()) {
        const n = newest[index] ?? null;
        if (n === null) continue;
        const key = sessionKey(ref);
        const nowMs = this.#ports.clock.monotonicMs();
        const earlier = before?.get(key);
        // After that claim the session had nothing to do but to wait for its timers.
        if (earlier?.n === n && nowMs - earlier.atMs < CLAIMED_AGAIN_MS) claimed.set(key, earlier);
        else if (await this.#claimUnnoted(ref)) claimed.set(key, { n, atMs: nowMs });
      }
    }
  }

  /** Claims a session, unless a host has noted it since the notes were read. @returns whether it was claimed. */
  async #claimUnnoted(ref: SessionRef): Promise<boolean> {
    const noted = await this.#notedIn(partitionOf(ref.sessionId));
    if (noted.has(sessionKey(ref)) || !this.#host.isFree(ref)) return false;
    this.#ports.log.info(
      { session_id: ref.sessionId },
      'a session has open effects but no active-session note: this host claims it, in case the note was lost',
    );
    this.#host.claim(ref);
    return true;
  }

  async #notedIn(p: number): Promise<ReadonlySet<string>> {
    return new Set((await this.#ports.active.list(p)).map(({ ref }) => sessionKey(ref)));
  }
}
