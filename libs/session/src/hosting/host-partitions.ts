/**
 * The partitions of this host: which it serves, and what becomes of sessions when that changes.
 *
 * A partition's commands go to its new host at once. Sessions that the old host works on stay there until their calls
 * have ended: it says in the note of each whose it is, the new host rings it for their commands meanwhile, and goes on
 * with each as it is let go. All of it may fail: then a command is delivered again, a host takes up what another one has,
 * and the fence decides (RUNNER-10).
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

/** The sessions of a host, as its partitions steer them. */
export interface PartitionedSessions {
  /** Whether the session is in this host's memory. */
  isHere(ref: SessionRef): boolean;
  /** A command has come for a session of this host. */
  ring(doorbell: Doorbell): void;
  /**
   * Goes on with a session that may have work, and that nobody else works on. Resolves when it has gone on, or that takes
   * too long to wait for; does not reject.
   */
  takeUp(session: ActiveSession): Promise<void>;
  /** Whether a session's newest record has effects that someone has to continue. Rejects where it cannot be read. */
  hasWork(ref: SessionRef): Promise<boolean>;
  /** Leaves the sessions of these partitions to their next hosts, each as soon as its calls have ended. */
  transfer(partitions: ReadonlySet<number>): void;
  /** Drops the leftovers of sessions that other hosts own, or have owned. */
  dropLeftovers(isOthers: (ref: SessionRef) => boolean): void;
  /** The partitions of this host are these from now on. */
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

/** Deliveries by their place: one that is made again replaces the one before. */
type Rung = Map<number, Doorbell>;

interface Held {
  session: ActiveSession;
  readonly rung: Rung;
}

/** How often a session that another host has is looked for, and how soon trouble is tried again. */
const LOOK_AGAIN_MS = 1_000;
/**
 * How often all notes of this host's partitions are read: that a session waits for its next host is said once, and may be lost,
 * and whoever noted it when it was not its own any more may have lost it without a word.
 */
const LOOK_AT_ALL_MS = 15_000;
/**
 * How often the journals of each partition are compared with its notes, and how fast: one partition at a time, so many newest
 * records a second. A note may be lost with a replica, and no other sign remains of a session whose host has died. 100,000
 * sessions are compared within an hour.
 */
const COMPARE_EVERY_MS = 10 * 60_000;
const COMPARE_PAUSE_MS = 250;
const COMPARED_AT_ONCE = 8;
/** No command has this place: a host is rung for it to hear whether it has the session. */
const JUST_ASKING = 0;

/** See the top of the file. */
export class HostPartitions {
  readonly #ports: PartitionPorts;
  readonly #sessions: PartitionedSessions;
  readonly #stray: (command: StrayCommand) => void;
  readonly #newName: () => string;
  readonly #peers: HostPeers;
  readonly #state: HostState;
  readonly #only: ReadonlySet<number> | null;
  #assigned: ReadonlySet<number> = new Set();
  /** Partitions whose notes are not read yet, and what has rung for them. */
  readonly #unread = new Map<number, Rung>();
  /** Sessions of these partitions that another host works on still. */
  readonly #held = new Map<string, Held>();
  /** When the journals of a partition were last compared with its notes, on the monotonic clock. */
  readonly #compared = new Map<number, number>();
  readonly #takeUps = new TakeUps((session) => this.#takeUp(session));
  #balancing: Promise<void> | null = null;
  #looking: Promise<void> | null = null;
  /** The hosts have changed since the partitions were last balanced. */
  #isStale = false;
  /** Trouble that the log has been told of, and that has not ended since. */
  readonly #warned = new Set<string>();
  /** Sessions that were found to be taken up. */
  #found = 0;

  /**
   * @param state of this host. Its partitions move it.
   * @param newName makes the names under which this host is known.
   * @param options `partitions`: serves these, whoever else lives.
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

  /** The name under which this host notes its sessions. */
  get self(): string {
    return this.#peers.self;
  }

  /** Whether effects may begin: nobody else can have taken this host for dead. */
  get mayBegin(): boolean {
    return this.#peers.hasLease || !this.#peers.hasOthers;
  }

  /** Whether any other host lives. */
  get hasOthers(): boolean {
    return this.#peers.hasOthers;
  }

  /** Whether it has heard itself a moment ago. */
  get isHeard(): boolean {
    return this.#peers.hasLease;
  }

  /** Whether a session is this host's to work on. */
  isOwn({ sessionId }: SessionRef): boolean {
    return this.#assigned.has(partitionOf(sessionId));
  }

  /** Whether a session is another host's. While this one is cut off, it does not know. */
  isOthers(ref: SessionRef): boolean {
    return !this.#state.isCutOff && !this.isOwn(ref);
  }

  /**
   * Joins the hosts. Resolves when commands flow and it is known which sessions have to be taken up.
   * @returns how many those are.
   */
  async start(): Promise<number> {
    await this.#peers.join();
    await this.#balance();
    void this.#lookAtAll();
    void this.#compareAll();
    return this.#found;
  }

  /**
   * Finds out whose a session is that another host has written to, and takes it up if it is nobody's.
   * @param isOld that was long ago: a host that is noted, and was never heard of, is not waited for any more.
   * @returns whether it is known by now. Rejects where the notes cannot be read.
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

  /** Gives all partitions away. Rejects where the inbox cannot be closed in order. */
  async retire(): Promise<void> {
    if (!this.#state.apply('retired')) return;
    this.#peers.retire();
    this.#held.clear();
    this.#unread.clear();
    this.#takeUps.clear();
    await this.#ports.inbox.close();
  }

  /** A session that was let go of has work for its next host. */
  release(ref: SessionRef): void {
    this.#peers.release(ref);
  }

  /** Is gone: to be called after {@link retire}. */
  leave(): void {
    this.#state.apply('ended');
    this.#peers.leave();
  }

  /** Is gone without a word, as a crash would have it. */
  vanish(): void {
    this.#state.apply('ended');
    this.#peers.vanish();
  }

  // ---- which partitions ----

  #wanted(): ReadonlySet<number> {
    if (this.#state.isCutOff) return new Set();
    if (this.#only) return this.#only;
    return new Set(assignPartitions(this.#peers.serving, PARTITIONS).get(this.#peers.self) ?? []);
  }

  /** Contract: does not reject. One at a time; what changes meanwhile is looked at after it. */
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
    // Here, and not when its promise has settled: what changes in between would be looked at by nobody.
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

  // ---- whose sessions ----

  /**
   * Reads the notes of partitions: what nobody works on is taken up, the rest is left to whoever has it. Rejects where some
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

  /** @returns the partition's sessions that nobody works on. */
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
    // A note that has gone: nobody works on it, and what has rung for it is for us.
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

  /** What has rung for a session that somebody else had is this host's now. */
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

  /** What was told may have been lost on the way. Contract: does not reject. */
  async #lookAgain(): Promise<void> {
    while (this.#held.size > 0 && !this.#state.isLeaving) {
      await this.#lookAfter(LOOK_AGAIN_MS, async () => {
        const partitions = new Set([...this.#held.values()].map(({ session }) => partitionOf(session.ref.sessionId)));
        await this.#sort([...partitions]);
        // A note may name a host that has lost the session to another, which has let it go since.
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
        // Another may have noted it after the notes were read, and have lost it since.
        if (host === null || this.#peers.isGone(host)) this.#find(session);
        else if (this.#isElsewhere(session)) this.#hold(session);
      }
    };
    while (!this.#state.isLeaving) await this.#lookAfter(LOOK_AT_ALL_MS, () => sideBySide([...this.#assigned], look));
  }

  /** Compares journals with notes for as long as this host serves. Contract: does not reject. */
  async #compareAll(): Promise<void> {
    while (!this.#state.isLeaving) {
      await this.#lookAfter(LOOK_AT_ALL_MS, async () => {
        const dueMs = this.#ports.clock.monotonicMs() - COMPARE_EVERY_MS;
        const isDue = (p: number) => (this.#compared.get(p) ?? Number.NEGATIVE_INFINITY) <= dueMs;
        const failures: unknown[] = [];
        for (const p of [...this.#assigned].filter(isDue)) {
          if (this.#state.isLeaving || !this.#assigned.has(p)) continue;
          // A stream holds a few partitions. Those of the others are compared while one is unavailable.
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

  /** Claims the sessions of a partition that have work, and no note. Rejects where the store cannot be read. */
  async #compareOne(p: number): Promise<void> {
    const refs: SessionRef[] = [];
    for await (const ref of this.#ports.journal.sessionsOf(p)) refs.push(ref);
    // Read after the journals: a note is there before the first record of its work.
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

  /** Of trouble that goes on, the first time is for people. */
  #warn(error: unknown, what: string): void {
    this.#ports.log[this.#warned.has(what) ? 'debug' : 'warn']({ error: (error as Error).message }, what);
    this.#warned.add(what);
  }

  // ---- what is heard ----

  #ring(doorbell: Doorbell): void {
    // Whoever has the partition is rung again.
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
    // The other host acknowledges: it has the delivery.
    if (!this.#sessions.isHere(ref)) this.#peers.release(ref);
    else if (seq !== JUST_ASKING) this.#sessions.ring({ ref, seq, ack: () => undefined });
  }

  #released(ref: SessionRef): void {
    if (!this.isOwn(ref) || this.#state.isLeaving) return;
    const held = this.#held.get(sessionKey(ref));
    void this.#takeUps.add(held ? { ...held.session, host: null } : { ref, host: null, revision: 0 });
  }

  #leaseExpired(isDeclaredDead: boolean): void {
    // No other host could have claimed sessions from a host that is alone: it goes on working.
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
    // It is rejoining already.
    if (!this.#state.apply('heard')) return;
    // Other hosts notify it under its new name, so it listens to that name first.
    while (!(await this.#renamed())) {
      await this.#ports.clock.sleep(LOOK_AGAIN_MS, this.#state.ended);
      if (this.#state.isLeaving) return;
    }
    this.#state.apply('renamed');
    await this.#balance();
  }

  /** What its notes say of the host that it was until now must not keep the others from them. */
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
