/**
 * The partitions of this host, and the transfer of sessions when they change. A note is the stored entry of a session
 * with unfinished work: it names the host that works on the session, or no host if one has left it (`ActiveSession` in
 * libs/ports).
 *
 * The commands of a partition go to its new host at once. A session stays on its old host until it is drained
 * (drain-sessions.ts), 10 s at most (`TRANSFER_GRACE_MS` in session-host.ts): its note names the old host. Meanwhile
 * the new host notifies the old one of commands, and claims the session once the old host has left it. A message may be
 * lost, and a note outdated. Then the store repeats a delivery, or a host claims a session that another one owns, and
 * the fence decides (libs/ports, journal.ts).
 *
 * Who owns a session, step by step:
 * - Which host has a partition: `#wanted`, by `assignPartitions` (assign-partitions.ts) or the option `partitions`.
 * - Which sessions of its partitions a host claims: `#applyNotes`, `#recheckAllNotes` and `claimByNote`, by the notes;
 *   `#sessionLeft`, after another host has left one; `#balanceOnce`, those of `#elsewhere` whose host is no longer alive;
 *   {@link NoteComparison}, if a note was lost.
 * - Whether a claim loads the session: `Host.claim` (session-host.ts), only if it has open effects. After a failure on
 *   this host, `Host.#wakeAfterBackOff` loads it in any case. After a record of another host, `claimByNote` decides.
 * - How its runner becomes the owner: `SessionLifecycle.takeOwnership` (runner/session-lifecycle.ts) appends `owned` with the next
 *   epoch, unless the runner's own host and generation wrote the newest record.
 * - How the former owner notices: the journal refuses its next append, `resolveRefusedAppend` (journal/append-record.ts) returns
 *   `foreign`, and `JournalWriter.#appendOrLeave` (runner/journal-writer.ts) leaves the session (RUNNER-10,
 *   runner/session-runner.ts).
 */
import type { ActiveSession, CommandInbox, CommandNotification, HostChannel, UnroutableCommand } from '@coxswain/ports';
import {
  HOST_LIVENESS,
  type HostLiveness,
  PARTITIONS,
  partitionOf,
  type SessionRef,
  sessionKey,
} from '@coxswain/protocol';
import { assignPartitions } from './assign-partitions.ts';
import { ClaimQueue } from './claim-queue.ts';
import { type ComparisonPorts, NoteComparison } from './compare-notes.ts';
import { HostPeers } from './host-peers.ts';
import type { HostState } from './host-state.ts';
import { forEachConcurrent } from './load-limit.ts';
import type { PartitionedSessions } from './partitioned-sessions.ts';

/** The ports of a host's partitions. */
export interface PartitionPorts extends ComparisonPorts {
  readonly inbox: CommandInbox;
  readonly hostChannel: HostChannel;
}

/** Notifications by the place of their commands in the command stream. A repeated one replaces the one before. */
type Notifications = Map<number, CommandNotification>;

/** A session of this host's partitions that another host still works on. */
interface SessionElsewhere {
  session: ActiveSession;
  readonly notifications: Notifications;
}

/** The time between two checks of the sessions in `#elsewhere`, and before a retry. */
const RECHECK_ELSEWHERE_MS = 1_000;
/**
 * The time between two reads of all notes in this host's partitions, and between two comparisons of journals with
 * notes. Both are needed: a host announces only once that it has left a session, and the message may be lost. Another
 * host can also note a session after this host has read the notes, and then end without a message.
 */
const RECHECK_ALL_NOTES_MS = 15_000;
/**
 * A `seq` that no command has. A notification with it carries no command: it asks a host whether it still has the session.
 * A host without the session answers that it has left it (`announceSessionLeft`).
 */
const ASKS_ONLY = 0;

/** Assigns partitions to this host, and moves its sessions accordingly. */
export class HostPartitions {
  readonly #ports: PartitionPorts;
  readonly #sessions: PartitionedSessions;
  readonly #unroutable: (command: UnroutableCommand) => void;
  readonly #newName: () => string;
  readonly #peers: HostPeers;
  readonly #state: HostState;
  readonly #only: ReadonlySet<number> | null;
  #assigned: ReadonlySet<number> = new Set();
  /** Partitions whose notes are not read yet, with their notifications. */
  readonly #unread = new Map<number, Notifications>();
  /** Sessions of this host's partitions that another host still works on. */
  readonly #elsewhere = new Map<string, SessionElsewhere>();
  readonly #comparison: NoteComparison;
  readonly #claims = new ClaimQueue((session) => this.#claim(session));
  #balancing: Promise<void> | null = null;
  #recheckingElsewhere: Promise<void> | null = null;
  /** The hosts have changed since the partitions were last balanced. */
  #isStale = false;
  /** Failures with a warning in the log, until the next success. */
  readonly #warned = new Set<string>();
  /** The number of claims that {@link #queueClaim} has queued. A session that is found twice counts twice. */
  #found = 0;

  /**
   * @param state the state of this host. This class applies all its events.
   * @param unroutable answers a command whose subject names no session.
   * @param newName makes the next name of this host on the host channel.
   * @param options `partitions`: serves exactly these, whichever other hosts are alive.
   */
  constructor(
    ports: PartitionPorts,
    sessions: PartitionedSessions,
    state: HostState,
    unroutable: (command: UnroutableCommand) => void,
    newName: () => string,
    {
      partitions,
      liveness = HOST_LIVENESS,
    }: { partitions?: readonly number[] | undefined; liveness?: HostLiveness | undefined },
  ) {
    this.#ports = ports;
    this.#sessions = sessions;
    this.#state = state;
    this.#unroutable = unroutable;
    this.#newName = newName;
    const compared = {
      partitions: () => this.#assigned,
      isFree: (ref: SessionRef) =>
        this.isAssigned(ref) && !this.#sessions.isHere(ref) && !this.#elsewhere.has(sessionKey(ref)),
      openWorkAt: (ref: SessionRef) => sessions.openWorkAt(ref),
      claim: (ref: SessionRef) => this.#queueClaim({ ref, host: null, revision: 0 }),
    };
    this.#comparison = new NoteComparison(ports, compared, state);
    this.#only = partitions ? new Set(partitions) : null;
    const handlers = {
      changed: () => void this.#balance(),
      leaseExpired: (isDeclaredDead: boolean) => this.#leaseExpired(isDeclaredDead),
      heardAgain: () => void this.#heardAgain(),
      notified: (ref: SessionRef, seq: number) => this.#notified(ref, seq),
      sessionLeft: (ref: SessionRef) => this.#sessionLeft(ref),
    };
    this.#peers = new HostPeers(ports, newName(), handlers, liveness);
  }

  /** The name under which this host notes its sessions. */
  get self(): string {
    return this.#peers.self;
  }

  /** Whether effects may start: this host has its lease, or knows no other host. */
  get mayStartEffects(): boolean {
    return this.#peers.hasLease || !this.#peers.hasOthers;
  }

  /** Whether another host is alive. */
  get hasOthers(): boolean {
    return this.#peers.hasOthers;
  }

  /** Whether this host has its lease (`HostPeers.hasLease`). */
  get hasLease(): boolean {
    return this.#peers.hasLease;
  }

  /** Whether the partition of a session is assigned to this host. Another host may still work on the session. */
  isAssigned({ sessionId }: SessionRef): boolean {
    return this.#assigned.has(partitionOf(sessionId));
  }

  /** Whether this host has read the notes of a session's partition since it was assigned: they name the sessions of others. */
  hasReadNotes({ sessionId }: SessionRef): boolean {
    return !this.#unread.has(partitionOf(sessionId));
  }

  /**
   * Whether another live host still works on a session of this host's partitions, as far as this host knows. It claims the
   * session once the other has left it.
   */
  isKeptByOther(ref: SessionRef): boolean {
    return this.#elsewhere.has(sessionKey(ref));
  }

  /**
   * Joins the hosts. Resolves when the host receives commands and has queued the claims of the sessions that it has found.
   * @returns the number of these claims.
   */
  async start(): Promise<number> {
    await this.#peers.join();
    await this.#balance();
    void this.#recheckAllNotes();
    void this.#compareAll();
    return this.#found;
  }

  /**
   * Claims a session that another host has appended to, if its note permits that, and waits for the claim. The first case
   * that applies decides:
   * - There is no note, or the partition is not this host's: claims nothing. {@link NoteComparison} finds lost notes.
   * - The note names another live host: keeps the session in `#elsewhere`.
   * - It names this host or no host: claims the session.
   * - It names another host that is not alive: claims the session if `mayTakeOver`. A host that is not heard may still be
   *   alive, so callers wait first.
   * @returns false in the last case without `mayTakeOver`: the caller tries again. Rejects where the notes cannot be read.
   */
  async claimByNote(ref: SessionRef, mayTakeOver: boolean): Promise<boolean> {
    const notes = await this.#ports.active.list(partitionOf(ref.sessionId));
    const session = notes.find((note) => sessionKey(note.ref) === sessionKey(ref));
    if (!session || !this.isAssigned(ref)) return true;
    const { host } = session;
    if (this.#isElsewhere(session)) this.#keepElsewhere(session);
    else if (host === null || host === this.#peers.self || mayTakeOver) await this.#claims.add(session);
    else return false;
    return true;
  }

  /**
   * Leaves all partitions to other hosts: from its first step on, the host passes no deliveries of the inbox on and
   * starts no claims. Then it closes the inbox. The sessions in memory continue, and still take the commands that other
   * hosts pass on. Does nothing for a host that is leaving already. Rejects where the inbox cannot be closed in order.
   */
  async retire(): Promise<void> {
    if (!this.#state.apply('retired')) return;
    this.#peers.retire();
    this.#elsewhere.clear();
    this.#unread.clear();
    this.#claims.clear();
    await this.#ports.inbox.close();
  }

  /** Announces to the other hosts that this host has left a session with work. The host itself continues. */
  announceSessionLeft(ref: SessionRef): void {
    this.#peers.announceSessionLeft(ref);
  }

  /** Ends this host, with a last heartbeat. Call it after {@link retire}. */
  end(): void {
    this.#state.apply('ended');
    this.#peers.end();
  }

  /** Ends this host without a message, like a crash. */
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

  /** Assigns the partitions anew. Runs once at a time, and again if the hosts change meanwhile. Contract: does not reject. */
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
        await this.#ports.clock.sleep(RECHECK_ELSEWHERE_MS, this.#state.ended);
        this.#isStale = true;
      }
    }
    // Not after the promise has settled: a change in between would start no balancing.
    this.#balancing = null;
  }

  async #balanceOnce(): Promise<void> {
    const before = this.#assigned;
    const wanted = this.#wanted();
    const lost = new Set([...before].filter((p) => !wanted.has(p)));
    this.#assigned = wanted;
    this.#sessions.assigned(wanted);
    for (const p of wanted) {
      if (before.has(p)) continue;
      this.#unread.set(p, new Map());
      this.#comparison.makeDue(p);
    }
    for (const p of lost) this.#unread.delete(p);
    for (const [key, { session }] of this.#elsewhere) if (!this.isAssigned(session.ref)) this.#elsewhere.delete(key);
    if (lost.size > 0) this.#sessions.transfer(lost);
    await this.#ports.inbox.open(
      { notify: (notification) => this.#notify(notification), unroutable: (command) => this.#unroutable(command) },
      [...wanted],
    );
    await this.#claimUnowned([...this.#unread.keys()]);
    for (const { session } of this.#elsewhere.values()) if (!this.#isElsewhere(session)) this.#queueClaim(session);
  }

  // ---- owners of sessions ----

  /**
   * Reads the notes of partitions, and queues the claims of the sessions without an owner. Rejects where some notes cannot be
   * read; the callers retry.
   */
  async #claimUnowned(partitions: readonly number[]): Promise<void> {
    await forEachConcurrent(partitions, async (p) => {
      for (const session of await this.#applyNotes(p)) this.#queueClaim(session);
    });
  }

  /** Queues the claim of a session, and counts it. */
  #queueClaim(session: ActiveSession): void {
    this.#found++;
    void this.#claims.add(session);
  }

  /**
   * Reads the notes of a partition. Keeps sessions of another live host in `#elsewhere`, unless they are in memory
   * here. Drops leftovers of sessions without a note. Passes on the notifications that have waited for the notes.
   * @returns the sessions that no other live host has: noted without a host, under a host that is not alive, or under this
   *   host without a runner here.
   */
  async #applyNotes(p: number): Promise<readonly ActiveSession[]> {
    const notes = await this.#ports.active.list(p);
    if (!this.#assigned.has(p)) return [];
    const free = notes.filter((session) => {
      const isHere = this.#sessions.isHere(session.ref);
      if (!this.#isElsewhere(session)) return !isHere || session.host !== this.#peers.self;
      if (!isHere) this.#keepElsewhere(session);
      return false;
    });
    const noted = new Set(notes.map(({ ref }) => sessionKey(ref)));
    this.#sessions.dropLeftovers((ref) => partitionOf(ref.sessionId) === p && !noted.has(sessionKey(ref)));
    // A session without a note has no owner: its notifications are for this host.
    for (const [key, { session }] of this.#elsewhere)
      if (partitionOf(session.ref.sessionId) === p && !noted.has(key)) this.#dropElsewhere(session.ref);
    const notifications = this.#unread.get(p);
    this.#unread.delete(p);
    for (const notification of notifications?.values() ?? []) this.#notify(notification);
    return free;
  }

  #isElsewhere({ host }: ActiveSession): boolean {
    return host !== null && host !== this.#peers.self && this.#peers.isLive(host);
  }

  #keepElsewhere(session: ActiveSession): void {
    const key = sessionKey(session.ref);
    const entry = this.#elsewhere.get(key);
    if (entry) entry.session = session;
    else this.#elsewhere.set(key, { session, notifications: new Map() });
    this.#recheckingElsewhere ??= this.#recheckElsewhere();
  }

  /** A session is no longer on another host: passes the notifications on that arrived meanwhile. */
  #dropElsewhere(ref: SessionRef): void {
    const entry = this.#elsewhere.get(sessionKey(ref));
    this.#elsewhere.delete(sessionKey(ref));
    for (const notification of entry?.notifications.values() ?? []) this.#sessions.notify(notification);
  }

  async #claim(session: ActiveSession): Promise<void> {
    if (this.#state.isLeaving || !this.isAssigned(session.ref)) return;
    await this.#sessions.claim(session);
    this.#dropElsewhere(session.ref);
  }

  /**
   * Checks the notes of the sessions in `#elsewhere`, as long as there are some: the message that one was left may be lost.
   * Contract: does not reject.
   */
  async #recheckElsewhere(): Promise<void> {
    while (this.#elsewhere.size > 0 && !this.#state.isLeaving) {
      await this.#runAfter(RECHECK_ELSEWHERE_MS, async () => {
        const partitions = new Set(
          [...this.#elsewhere.values()].map(({ session }) => partitionOf(session.ref.sessionId)),
        );
        await this.#claimUnowned([...partitions]);
        // A note may name a host that has lost the session to a third host, which has left the session since. So ask
        // the named host: if it does not have the session, it answers that it has left it (`announceSessionLeft`).
        for (const { session } of this.#elsewhere.values())
          if (session.host !== null) this.#peers.notify(session.host, session.ref, ASKS_ONLY);
      });
    }
    this.#recheckingElsewhere = null;
  }

  /**
   * Reads all notes every {@link RECHECK_ALL_NOTES_MS}. Of the sessions that are not in memory here, claims those that are
   * noted without a host, or under one that has left or was declared dead; keeps those of other live hosts in
   * `#elsewhere`. Contract: does not reject.
   */
  async #recheckAllNotes(): Promise<void> {
    const check = async (p: number) => {
      for (const session of await this.#ports.active.list(p)) {
        const { ref, host } = session;
        if (!this.isAssigned(ref) || this.#sessions.isHere(ref)) continue;
        // The message about such a session was lost, or none was sent: see `RECHECK_ALL_NOTES_MS`. A host that was never heard may
        // have just started, so its sessions are not claimed here.
        if (host === null || this.#peers.isGone(host)) this.#queueClaim(session);
        else if (this.#isElsewhere(session)) this.#keepElsewhere(session);
      }
    };
    while (!this.#state.isLeaving)
      await this.#runAfter(RECHECK_ALL_NOTES_MS, () => forEachConcurrent([...this.#assigned], check));
  }

  /** Compares journals with notes until the host leaves. Contract: does not reject. */
  async #compareAll(): Promise<void> {
    while (!this.#state.isLeaving) await this.#runAfter(RECHECK_ALL_NOTES_MS, () => this.#comparison.compareDue());
  }

  /** Runs a check after a delay, unless the host is leaving by then. Contract: does not reject. */
  async #runAfter(delayMs: number, check: () => Promise<void>): Promise<void> {
    await this.#ports.clock.sleep(delayMs, this.#state.ended);
    if (this.#state.isLeaving) return;
    try {
      await check();
      this.#warned.clear();
    } catch (error) {
      this.#warn(error, 'notes of active sessions cannot be read now');
    }
  }

  /** Logs a failure: as a warning the first time since the last success, repetitions for debugging. */
  #warn(error: unknown, what: string): void {
    this.#ports.log[this.#warned.has(what) ? 'debug' : 'warn']({ error: (error as Error).message }, what);
    this.#warned.add(what);
  }

  // ---- messages ----

  /**
   * Passes on a notification of the inbox. If the session is not in memory here, and the notes of its partition are not
   * read yet, the notification waits for the notes. If another host still works on the session, passes it on to that
   * host, and keeps it until that host has left. Otherwise notifies the session here, which loads it.
   */
  #notify(notification: CommandNotification): void {
    // The store repeats the delivery to the partition's host.
    if (this.#state.isLeaving || !this.isAssigned(notification.ref)) return;
    const unread = this.#unread.get(partitionOf(notification.ref.sessionId));
    if (unread && !this.#sessions.isHere(notification.ref)) {
      unread.set(notification.seq, notification);
      return;
    }
    const entry = this.#elsewhere.get(sessionKey(notification.ref));
    if (entry?.session.host) {
      entry.notifications.set(notification.seq, notification);
      this.#peers.notify(entry.session.host, notification.ref, notification.seq);
    } else this.#sessions.notify(notification);
  }

  /** Another host has passed a notification on, or asks whether this host still has the session. */
  #notified(ref: SessionRef, seq: number): void {
    if (!this.#sessions.isHere(ref)) this.#peers.announceSessionLeft(ref);
    // Without `ack`: the host that sent the notification has the delivery.
    else if (seq !== ASKS_ONLY) this.#sessions.notify({ ref, seq });
  }

  /** Another host has left a session, or does not have it: claims it, if its partition is assigned to this host. */
  #sessionLeft(ref: SessionRef): void {
    if (!this.isAssigned(ref) || this.#state.isLeaving) return;
    const entry = this.#elsewhere.get(sessionKey(ref));
    void this.#claims.add(entry ? { ...entry.session, host: null } : { ref, host: null, revision: 0 });
  }

  #leaseExpired(isDeclaredDead: boolean): void {
    // This host knows no other host that could have claimed its sessions, so it continues.
    if (!isDeclaredDead && !this.#peers.hasOthers) return;
    this.#ports.log.warn({}, 'other hosts received no heartbeat from this host: it releases its sessions to them');
    this.#state.apply('lease_expired');
    this.#assigned = new Set();
    this.#sessions.assigned(this.#assigned);
    this.#elsewhere.clear();
    this.#unread.clear();
    this.#claims.clear();
    this.#sessions.abandonSessions();
    void this.#balance();
  }

  /** Wakes all sessions. A host that was cut off has none: it takes a new name, then partitions. Contract: does not reject. */
  async #heardAgain(): Promise<void> {
    if (!this.#state.isCutOff) return this.#sessions.wakeAll();
    // It is rejoining already.
    if (!this.#state.apply('heard')) return;
    // Other hosts notify it under its new name, so it listens to that name first.
    while (!(await this.#renamed())) {
      await this.#ports.clock.sleep(RECHECK_ELSEWHERE_MS, this.#state.ended);
      if (this.#state.isLeaving) return;
    }
    this.#state.apply('renamed');
    await this.#balance();
  }

  /**
   * Takes a new name, so that other hosts no longer wait for the sessions whose notes name this host by its old name.
   * @returns false if that failed.
   */
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
