/**
 * The partitions of this host, and their sessions when the assignment changes.
 *
 * The commands of a partition go to its new host immediately. Sessions with running calls stay on the old host until
 * the calls have ended. The note of each session names its owner. The new host notifies the owner of commands
 * meanwhile, and claims each session when it is released. Any of this may fail: then a command is delivered again, a
 * host claims a session that another one owns, and the fence decides (RUNNER-10).
 */
import type { ActiveSession, Clock, CommandInbox, Doorbell, HostLine, Log, StrayCommand } from '@coxswain/ports';
import {
  HOST_LIVENESS,
  type HostLiveness,
  PARTITIONS,
  partitionOf,
  type SessionRef,
  sessionKey,
} from '@coxswain/protocol';
import { assignPartitions } from './assign-partitions.ts';
import { HostPeers } from './host-peers.ts';
import type { HostState } from './host-state.ts';
import { sideBySide } from './load-turns.ts';
import { TakeUps } from './take-ups.ts';

/** The sessions of a host, controlled by its partitions. */
export interface PartitionedSessions {
  /** Whether the session is in this host's memory. */
  isHere(ref: SessionRef): boolean;
  /** A command for a session of this host has arrived. */
  ring(doorbell: Doorbell): void;
  /**
   * Claims a session that may have work and that no host owns. Resolves when it is claimed, or after a bound; does not
   * reject.
   */
  takeUp(session: ActiveSession): Promise<void>;
  /** Whether a session's newest record has effects that a host must continue. Rejects if it cannot be read. */
  hasWork(ref: SessionRef): Promise<boolean>;
  /** Transfers the sessions of these partitions to their next hosts, each as soon as its calls have ended. */
  transfer(partitions: ReadonlySet<number>): void;
  /** Drops the leftovers of sessions that other hosts own, or have owned. */
  dropLeftovers(isOthers: (ref: SessionRef) => boolean): void;
  /** The partitions of this host have changed to these. */
  assigned(partitions: ReadonlySet<number>): void;
  /** Continues all sessions: the host may start effects again. */
  resumeAll(): void;
  /** Leaves all sessions at once. */
  leaveAll(): void;
}

/** The ports that the partitions of a host use. */
export interface PartitionPorts {
  readonly inbox: CommandInbox;
  readonly hostLine: HostLine;
  readonly active: { list(partition: number): Promise<readonly ActiveSession[]> };
  readonly journal: { sessionsOf(partition: number): AsyncIterable<SessionRef> };
  readonly clock: Clock;
  readonly log: Log;
}

/** Deliveries by their position: a repeated delivery replaces the earlier one. */
type Rung = Map<number, Doorbell>;

interface Held {
  session: ActiveSession;
  readonly rung: Rung;
}

/** Interval of checks on sessions that another host owns, and delay of retries. */
const LOOK_AGAIN_MS = 1_000;
/**
 * Interval of reads of all notes of this host's partitions. The notification that a session waits for an owner is sent
 * once and may be lost, and a host may have lost a session that it noted as a former owner.
 */
const LOOK_AT_ALL_MS = 15_000;
/**
 * Interval and pace of comparing the journals of each partition with its notes: one partition at a time, with a bounded
 * rate of record reads. A note may be lost with a replica, and then nothing else shows that a session of a dead host
 * has work. 100,000 sessions are compared within an hour.
 */
const COMPARE_EVERY_MS = 10 * 60_000;
const COMPARE_PAUSE_MS = 250;
const COMPARED_AT_ONCE = 8;
/** Not a position of a command: the notification asks whether the host owns the session. */
const JUST_ASKING = 0;

/** The partitions of one host, and the claims of their sessions. */
export class HostPartitions {
  readonly #ports: PartitionPorts;
  readonly #sessions: PartitionedSessions;
  readonly #stray: (command: StrayCommand) => void;
  readonly #newName: () => string;
  readonly #peers: HostPeers;
  readonly #state: HostState;
  readonly #only: ReadonlySet<number> | null;
  #assigned: ReadonlySet<number> = new Set();
  /** Partitions with unread notes, and the notifications for them. */
  readonly #unread = new Map<number, Rung>();
  /** Sessions of these partitions that another host still owns. */
  readonly #held = new Map<string, Held>();
  /** Time of the last comparison of each partition's journals with its notes, on the monotonic clock. */
  readonly #compared = new Map<number, number>();
  readonly #takeUps = new TakeUps((session) => this.#takeUp(session));
  #balancing: Promise<void> | null = null;
  #looking: Promise<void> | null = null;
  /** Whether the hosts have changed since the last balancing. */
  #isStale = false;
  /** Logged problems that still exist. */
  readonly #warned = new Set<string>();
  /** Number of sessions found to be claimed. */
  #found = 0;

  /**
   * @param state of this host. Its partitions change it.
   * @param newName makes names for this host.
   * @param options `partitions`: serves these, regardless of other hosts.
   */
  constructor(
    ports: PartitionPorts,
    sessions: PartitionedSessions,
    state: HostState,
    stray: (command: StrayCommand) => void,
    newName: () => string,
    {
      partitions,
      liveness = HOST_LIVENESS,
    }: { partitions?: readonly number[] | undefined; liveness?: HostLiveness | undefined },
  ) {
    this.#ports = ports;
    this.#sessions = sessions;
    this.#state = state;
    this.#stray = stray;
    this.#newName = newName;
    this.#only = partitions ? new Set(partitions) : null;
    const handlers = {
      changed: () => void this.#balance(),
      leaseExpired: (isDeclaredDead: boolean) => this.#leaseExpired(isDeclaredDead),
      heardAgain: () => void this.#heardAgain(),
      rung: (ref: SessionRef, seq: number) => this.#rung(ref, seq),
      released: (ref: SessionRef) => this.#released(ref),
    };
    this.#peers = new HostPeers(ports, newName(), handlers, liveness);
  }

  /** The name of this host in notes of its sessions. */
  get self(): string {
    return this.#peers.self;
  }

  /** Whether effects may start: no other host can have declared this one dead. */
  get mayBegin(): boolean {
    return this.#peers.hasLease || !this.#peers.hasOthers;
  }

  /** Whether any other host is alive. */
  get hasOthers(): boolean {
    return this.#peers.hasOthers;
  }

  /** Whether this host received its own last heartbeat in time. */
  get isHeard(): boolean {
    return this.#peers.hasLease;
  }

  /** Whether a session belongs to a partition of this host. */
  isOwn({ sessionId }: SessionRef): boolean {
    return this.#assigned.has(partitionOf(sessionId));
  }

  /** Whether a session belongs to another host. Unknown (false) while this one is cut off. */
  isOthers(ref: SessionRef): boolean {
    return !this.#state.isCutOff && !this.isOwn(ref);
  }

  /**
   * Joins the hosts. Resolves when commands are delivered and the sessions to claim are known.
   * @returns the number of these sessions.
   */
  async start(): Promise<number> {
    await this.#peers.join();
    await this.#balance();
    void this.#lookAtAll();
    void this.#compareAll();
    return this.#found;
  }

  /**
   * Finds the owner of a session that another host has written to, and claims it if there is none.
   * @param isOld whether that was long ago: then a noted host without any heartbeat is no longer waited for.
   * @returns whether the owner is known now. Rejects if the notes cannot be read.
   */
  async lookAt(ref: SessionRef, isOld: boolean): Promise<boolean> {
    const notes = await this.#ports.active.list(partitionOf(ref.sessionId));
    const session = notes.find((note) => sessionKey(note.ref) === sessionKey(ref));
    if (!session || !this.isOwn(ref)) return true;
    const { host } = session;
    if (this.#isElsewhere(session)) this.#hold(session);
    else if (host === null || host === this.#peers.self || isOld) await this.#takeUps.add(session);
    else return false;
    return true;
  }

  /** Gives up all partitions. Rejects if the inbox cannot be closed in order. */
  async retire(): Promise<void> {
    if (!this.#state.apply('retired')) return;
    this.#peers.retire();
    this.#held.clear();
    this.#unread.clear();
    this.#takeUps.clear();
    await this.#ports.inbox.close();
  }

  /** A released session has work for its next host. */
  release(ref: SessionRef): void {
    this.#peers.release(ref);
  }

  /** Leaves the hosts. Call it after {@link retire}. */
  leave(): void {
    this.#state.apply('ended');
    this.#peers.leave();
  }

  /** Disappears without a message, like a crash. */
  vanish(): void {
    this.#state.apply('ended');
    this.#peers.vanish();
  }

  // ---- assignment ----

  #wanted(): ReadonlySet<number> {
    if (this.#state.isCutOff) return new Set();
    if (this.#only) return this.#only;
    return new Set(assignPartitions(this.#peers.serving, PARTITIONS).get(this.#peers.self) ?? []);
  }

  /** Contract: does not reject. One at a time; later changes are handled by another pass. */
  #balance(): Promise<void> {
    this.#isStale = true;
    this.#balancing ??= this.#balanceAll();
    return this.#balancing;
  }

  async #balanceAll(): Promise<void> {
    while (this.#isStale && !this.#state.isLeaving) {
      this.#isStale = false;
      try {
        await this.#balanceOnce();
        this.#warned.clear();
      } catch (error) {
        if (this.#state.isLeaving) break;
        this.#warn(error, 'partitions could not be claimed now');
        await this.#ports.clock.sleep(LOOK_AGAIN_MS, this.#state.ended);
        this.#isStale = true;
      }
    }
    // Reset here and not after its promise settles, so that changes in between start another pass.
    this.#balancing = null;
  }

  async #balanceOnce(): Promise<void> {
    const before = this.#assigned;
    const wanted = this.#wanted();
    const lost = new Set([...before].filter((p) => !wanted.has(p)));
    this.#assigned = wanted;
    this.#sessions.assigned(wanted);
    for (const p of wanted) if (!before.has(p)) this.#unread.set(p, new Map());
    for (const p of lost) {
      this.#unread.delete(p);
      this.#compared.delete(p);
    }
    for (const [key, { session }] of this.#held) if (!this.isOwn(session.ref)) this.#held.delete(key);
    if (lost.size > 0) this.#sessions.transfer(lost);
    this.#sessions.dropLeftovers((ref) => this.isOthers(ref));
    await this.#ports.inbox.open(
      { ring: (doorbell) => this.#ring(doorbell), stray: (command) => this.#stray(command) },
      [...wanted],
    );
    await this.#sort([...this.#unread.keys()]);
    for (const { session } of this.#held.values()) if (!this.#isElsewhere(session)) this.#find(session);
  }

  // ---- owners of sessions ----

  /**
   * Reads the notes of partitions: claims sessions without an owner, and leaves the others. Rejects if some notes
   * cannot be read; those are read again.
   */
  async #sort(partitions: readonly number[]): Promise<void> {
    await sideBySide(partitions, async (p) => {
      for (const session of await this.#sortOne(p)) this.#find(session);
    });
  }

  #find(session: ActiveSession): void {
    this.#found++;
    void this.#takeUps.add(session);
  }

  /** @returns the partition's sessions without an owner. */
  async #sortOne(p: number): Promise<readonly ActiveSession[]> {
    const notes = await this.#ports.active.list(p);
    if (!this.#assigned.has(p)) return [];
    const free = notes.filter((session) => {
      const isHere = this.#sessions.isHere(session.ref);
      if (!this.#isElsewhere(session)) return !isHere || session.host !== this.#peers.self;
      if (!isHere) this.#hold(session);
      return false;
    });
    const noted = new Set(notes.map(({ ref }) => sessionKey(ref)));
    this.#sessions.dropLeftovers((ref) => partitionOf(ref.sessionId) === p && !noted.has(sessionKey(ref)));
    // The note is gone: no host owns the session, and its notifications are for this host.
    for (const [key, { session }] of this.#held)
      if (partitionOf(session.ref.sessionId) === p && !noted.has(key)) this.#unhold(session.ref);
    const rung = this.#unread.get(p);
    this.#unread.delete(p);
    for (const doorbell of rung?.values() ?? []) this.#ring(doorbell);
    return free;
  }

  #isElsewhere({ host }: ActiveSession): boolean {
    return host !== null && host !== this.#peers.self && this.#peers.isLive(host);
  }

  #hold(session: ActiveSession): void {
    const key = sessionKey(session.ref);
    this.#sessions.dropLeftovers((ref) => sessionKey(ref) === key);
    const held = this.#held.get(key);
    if (held) held.session = session;
    else this.#held.set(key, { session, rung: new Map() });
    this.#looking ??= this.#lookAgain();
  }

  /** The notifications for a session that another host owned are now for this host. */
  #unhold(ref: SessionRef): void {
    const held = this.#held.get(sessionKey(ref));
    this.#held.delete(sessionKey(ref));
    for (const doorbell of held?.rung.values() ?? []) this.#sessions.ring(doorbell);
  }

  async #takeUp(session: ActiveSession): Promise<void> {
    if (this.#state.isLeaving || !this.isOwn(session.ref)) return;
    await this.#sessions.takeUp(session);
    this.#unhold(session.ref);
  }

  /** Notifications may have been lost. Contract: does not reject. */
  async #lookAgain(): Promise<void> {
    while (this.#held.size > 0 && !this.#state.isLeaving) {
      await this.#lookAfter(LOOK_AGAIN_MS, async () => {
        const partitions = new Set([...this.#held.values()].map(({ session }) => partitionOf(session.ref.sessionId)));
        await this.#sort([...partitions]);
        // A note may name a former owner: the session may have moved to another host and been released since.
        for (const { session } of this.#held.values())
          if (session.host !== null) this.#peers.ring(session.host, session.ref, JUST_ASKING);
      });
    }
    this.#looking = null;
  }

  /** Contract: does not reject. */
  async #lookAtAll(): Promise<void> {
    const look = async (p: number) => {
      for (const session of await this.#ports.active.list(p)) {
        const { ref, host } = session;
        if (!this.isOwn(ref) || this.#sessions.isHere(ref)) continue;
        // Another host may have noted it after the notes were read, and have died since.
        if (host === null || this.#peers.isGone(host)) this.#find(session);
        else if (this.#isElsewhere(session)) this.#hold(session);
      }
    };
    while (!this.#state.isLeaving) await this.#lookAfter(LOOK_AT_ALL_MS, () => sideBySide([...this.#assigned], look));
  }

  /** Compares journals with notes as long as this host serves. Contract: does not reject. */
  async #compareAll(): Promise<void> {
    while (!this.#state.isLeaving) {
      await this.#lookAfter(LOOK_AT_ALL_MS, async () => {
        const dueMs = this.#ports.clock.monotonicMs() - COMPARE_EVERY_MS;
        const isDue = (p: number) => (this.#compared.get(p) ?? Number.NEGATIVE_INFINITY) <= dueMs;
        const failures: unknown[] = [];
        for (const p of [...this.#assigned].filter(isDue)) {
          if (this.#state.isLeaving || !this.#assigned.has(p)) continue;
          // A stream contains a few partitions. If one is unavailable, the partitions of the others are still compared.
          try {
            await this.#compareOne(p);
            this.#compared.set(p, this.#ports.clock.monotonicMs());
          } catch (error) {
            failures.push(error);
          }
          await this.#ports.clock.sleep(COMPARE_PAUSE_MS, this.#state.ended);
        }
        if (failures.length > 0) throw failures[0];
      });
    }
  }

  /** Claims the sessions of a partition that have work and no note. Rejects if the store cannot be read. */
  async #compareOne(p: number): Promise<void> {
    const refs: SessionRef[] = [];
    for await (const ref of this.#ports.journal.sessionsOf(p)) refs.push(ref);
    // Read after the journals: a note precedes the first record of its work.
    const noted = await this.#notedIn(p);
    const isFree = (ref: SessionRef) =>
      !noted.has(sessionKey(ref)) && this.isOwn(ref) && !this.#sessions.isHere(ref) && !this.#held.has(sessionKey(ref));
    const unnoted = refs.filter(isFree);
    for (let at = 0; at < unnoted.length && !this.#state.isLeaving; at += COMPARED_AT_ONCE) {
      if (at > 0) await this.#ports.clock.sleep(COMPARE_PAUSE_MS, this.#state.ended);
      const some = unnoted.slice(at, at + COMPARED_AT_ONCE);
      const working = await Promise.all(some.map((ref) => this.#sessions.hasWork(ref)));
      for (const ref of some.filter((_, index) => working[index])) await this.#claimUnnoted(ref);
    }
  }

  /** A host may have noted the session since the notes were read. */
  async #claimUnnoted(ref: SessionRef): Promise<void> {
    const noted = await this.#notedIn(partitionOf(ref.sessionId));
    if (noted.has(sessionKey(ref)) || this.#sessions.isHere(ref) || !this.isOwn(ref)) return;
    this.#ports.log.warn(
      { session_id: ref.sessionId },
      'a session has work but no active-session note: this host claims it',
    );
    this.#find({ ref, host: null, revision: 0 });
  }

  async #notedIn(p: number): Promise<ReadonlySet<string>> {
    return new Set((await this.#ports.active.list(p)).map(({ ref }) => sessionKey(ref)));
  }

  /** Contract: does not reject. */
  async #lookAfter(delayMs: number, look: () => Promise<void>): Promise<void> {
    await this.#ports.clock.sleep(delayMs, this.#state.ended);
    if (this.#state.isLeaving) return;
    try {
      await look();
      this.#warned.clear();
    } catch (error) {
      this.#warn(error, 'notes of active sessions cannot be read now');
    }
  }

  /** Logs the first of repeated problems as a warning. */
  #warn(error: unknown, what: string): void {
    this.#ports.log[this.#warned.has(what) ? 'debug' : 'warn']({ error: (error as Error).message }, what);
    this.#warned.add(what);
  }

  // ---- notifications ----

  #ring(doorbell: Doorbell): void {
    // The store repeats the delivery to the host with this partition.
    if (this.#state.isLeaving || !this.isOwn(doorbell.ref)) return;
    const unread = this.#unread.get(partitionOf(doorbell.ref.sessionId));
    if (unread && !this.#sessions.isHere(doorbell.ref)) {
      unread.set(doorbell.seq, doorbell);
      return;
    }
    const held = this.#held.get(sessionKey(doorbell.ref));
    if (held?.session.host) {
      held.rung.set(doorbell.seq, doorbell);
      this.#peers.ring(held.session.host, doorbell.ref, doorbell.seq);
    } else this.#sessions.ring(doorbell);
  }

  #rung(ref: SessionRef, seq: number): void {
    // The other host has the delivery and acknowledges it.
    if (!this.#sessions.isHere(ref)) this.#peers.release(ref);
    else if (seq !== JUST_ASKING) this.#sessions.ring({ ref, seq, ack: () => undefined });
  }

  #released(ref: SessionRef): void {
    if (!this.isOwn(ref) || this.#state.isLeaving) return;
    const held = this.#held.get(sessionKey(ref));
    void this.#takeUps.add(held ? { ...held.session, host: null } : { ref, host: null, revision: 0 });
  }

  #leaseExpired(isDeclaredDead: boolean): void {
    // No other host could claim sessions of a host that is alone, so it continues.
    if (!isDeclaredDead && !this.#peers.hasOthers) return;
    this.#ports.log.warn({}, 'other hosts received no heartbeat from this host: it releases its sessions to them');
    this.#state.apply('lease_expired');
    this.#assigned = new Set();
    this.#sessions.assigned(this.#assigned);
    this.#held.clear();
    this.#unread.clear();
    this.#takeUps.clear();
    this.#sessions.leaveAll();
    void this.#balance();
  }

  /** Contract: does not reject. */
  async #heardAgain(): Promise<void> {
    if (!this.#state.isCutOff) return this.#sessions.resumeAll();
    // It is already rejoining.
    if (!this.#state.apply('heard')) return;
    // Other hosts notify it under its new name, so it listens to that name first.
    while (!(await this.#renamed())) {
      await this.#ports.clock.sleep(LOOK_AGAIN_MS, this.#state.ended);
      if (this.#state.isLeaving) return;
    }
    this.#state.apply('renamed');
    await this.#balance();
  }

  /** Notes with the former name of this host must not keep other hosts from these sessions. */
  async #renamed(): Promise<boolean> {
    try {
      await this.#peers.rename(this.#newName());
      return true;
    } catch (error) {
      this.#warn(error, 'the host channel is disconnected again');
      return false;
    }
  }
}
