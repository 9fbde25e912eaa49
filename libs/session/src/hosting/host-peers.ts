/**
 * The hosts that are alive, as this host hears them.
 *
 * PEERS-1  A host is alive while its last heartbeat is recent by this host's own clock. No two clocks are compared.
 * PEERS-2  A host's own heartbeats come back over the same channel. While they do not, it knows nothing of the other hosts.
 *          Its lease is overdue before another host can declare it dead. While the lease is overdue, the host starts no
 *          effects, unless it knows no other host.
 * PEERS-3  To declare a host dead, another host sends a heartbeat `left` in its name; the name stays dead. So a host
 *          with an overdue lease asks the channel for the messages that were sent meanwhile. It continues if no host has
 *          declared it dead and its own heartbeat comes back: it was only slow, and a second claim of each session would
 *          add load to a busy computer. It also continues if it gets no answer and knows no other host. In all other
 *          cases it leaves all its sessions (`HostPartitions.#leaseExpired`).
 * PEERS-4  Heartbeats only say where work should go. A journal's fence decides who may write (libs/ports, journal.ts).
 */
import type { Clock, HostChannel, Log } from '@coxswain/ports';
import type { HostBeat, HostLiveness, SessionRef } from '@coxswain/protocol';
import { Lease } from './host-state.ts';

/** The events that a host learns from its peers. Contract: handlers return at once and do not throw. */
export interface HostPeersHandlers {
  /** A host has joined, has left or was declared dead, or no longer serves. */
  changed(): void;
  /**
   * The lease has the state `expired` (host-state.ts): it was overdue and no own heartbeat came back in time, or
   * another host has declared this host dead.
   * @param isDeclaredDead whether another host has declared this host dead: then its name stays dead. Otherwise it is
   *   unknown what the others have decided.
   */
  leaseExpired(isDeclaredDead: boolean): void;
  /** This host hears its own heartbeats again, after its lease was doubted or expired. */
  heardAgain(): void;
  /**
   * Another host notifies this one of a command for a session.
   * @param seq the command's place in the command stream; 0 only asks whether this host has the session.
   */
  notified(ref: SessionRef, seq: number): void;
  /** A host has left a session that waits for its next host, or does not have a session that it was asked about. */
  sessionLeft(ref: SessionRef): void;
}

/** Maximum of own heartbeats that have not come back yet. Beyond it, the oldest is no longer awaited. */
const OWN_BEATS_PENDING_MAX = 64;
/** Heartbeats that another host may miss, if this host knows it only from a stored heartbeat. */
const BEATS_MISSED_MAX = 3;
/** Names of dead hosts that are remembered, so that no late heartbeat revives them. */
const GONE_MAX = 256;

interface Peer {
  state: HostBeat['state'];
  heardMs: number;
}

/** Sends this host's heartbeats, and listens to those of others. */
export class HostPeers {
  readonly #channel: HostChannel;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #handlers: HostPeersHandlers;
  readonly #liveness: HostLiveness;
  readonly #peers = new Map<string, Peer>();
  readonly #sentMs = new Map<number, number>();
  readonly #ended = new AbortController();
  #self: string;
  /** The state in this host's heartbeats. */
  #ownState: HostBeat['state'] = 'serving';
  #no = 0;
  /** When the newest own heartbeat that came back was sent. Before one came back: when the channel was opened. */
  #heardOwnMs: number;
  readonly #lease = new Lease();
  readonly #gone = new Set<string>();
  /** Whether {@link #declareSilentDead} waits for the channel. */
  #isDeclaringSilent = false;

  constructor(
    { hostChannel, clock, log }: { readonly hostChannel: HostChannel; readonly clock: Clock; readonly log: Log },
    self: string,
    handlers: HostPeersHandlers,
    liveness: HostLiveness,
  ) {
    this.#liveness = liveness;
    this.#channel = hostChannel;
    this.#clock = clock;
    this.#log = log;
    this.#self = self;
    this.#handlers = handlers;
    this.#heardOwnMs = clock.monotonicMs();
  }

  /** The name under which other hosts know this host now. */
  get self(): string {
    return this.#self;
  }

  /** The names of the hosts that share the partitions, sorted; this host is among them while it serves. */
  get serving(): readonly string[] {
    const others = [...this.#peers].filter(([, { state }]) => state === 'serving').map(([host]) => host);
    return (this.#ownState === 'serving' ? [this.#self, ...others] : others).sort();
  }

  /** Whether another host is alive. */
  get hasOthers(): boolean {
    return this.#peers.size > 0;
  }

  /** Whether a host is this host, or was heard and is not gone. */
  isLive(host: string): boolean {
    return host === this.#self || this.#peers.has(host);
  }

  /** Whether a host has left or was declared dead. A host that was never heard may still be alive. */
  isGone(host: string): boolean {
    return this.#gone.has(host);
  }

  /** Whether this host has heard its own heartbeat within the lease, and the lease is neither doubted nor expired (`#regain`). */
  get hasLease(): boolean {
    return this.#lease.name === 'held' && this.#isFresh;
  }

  get #isFresh(): boolean {
    return this.#clock.monotonicMs() - this.#heardOwnMs < this.#liveness.leaseMs;
  }

  /**
   * Joins the hosts and starts the heartbeats. Resolves when the other alive hosts are known; until then it reports no
   * change of the hosts. Rejects where the channel cannot be opened.
   */
  async join(): Promise<void> {
    await this.#open();
    void this.#sendHeartbeats();
  }

  /**
   * Takes a new name. Other hosts may claim the sessions noted under the old one. Like {@link join}, it reports no change
   * of the hosts meanwhile. Rejects where the channel cannot be opened.
   */
  async rename(self: string): Promise<void> {
    this.#channel.heartbeat(this.#beatOf('left'));
    this.#self = self;
    await this.#open();
    // Ended meanwhile: a heartbeat would make the other hosts wait for this one.
    if (!this.#ended.signal.aborted) this.#beat();
  }

  /** Announces that this host accepts no more partitions. */
  retire(): void {
    this.#ownState = 'leaving';
    this.#beat();
  }

  /** Ends this host, with a last heartbeat. Does nothing after {@link vanish}. */
  end(): void {
    if (this.#ended.signal.aborted) return;
    this.#ownState = 'left';
    this.#beat();
    this.vanish();
  }

  /** Ends this host without a message, like a crash: it sends and hears nothing more. */
  vanish(): void {
    this.#ended.abort();
    this.#channel.close();
  }

  /** Notifies a host of a command for a session that it works on, or asks whether it has the session (`seq` 0). */
  notify(host: string, ref: SessionRef, seq: number): void {
    this.#channel.notify(host, ref, seq);
  }

  /** Announces that this host has left a session, or does not have a session that it was asked about. */
  announceSessionLeft(ref: SessionRef): void {
    this.#channel.announceSessionLeft(ref);
  }

  async #open(): Promise<void> {
    let isOpen = false;
    const { ttlMs, beatMs } = this.#liveness;
    // A stored heartbeat may be of a dead host: it counts only as long as `BEATS_MISSED_MAX` more heartbeats take.
    const ageMs = () => (isOpen ? 0 : Math.max(0, ttlMs - BEATS_MISSED_MAX * beatMs));
    await this.#channel.open(this.#self, {
      heartbeat: (beat) => {
        // While the channel opens, not all hosts are known, and this host has no lease: it would claim sessions, but start
        // none of their effects.
        if (this.#hear(beat, this.#clock.monotonicMs() - ageMs()) && isOpen) this.#handlers.changed();
      },
      notified: (ref, seq) => this.#handlers.notified(ref, seq),
      sessionLeft: (ref) => this.#handlers.sessionLeft(ref),
    });
    isOpen = true;
    this.#heardOwnMs = this.#clock.monotonicMs();
  }

  /** @returns whether the hosts have changed. */
  #hear({ host, state, no }: HostBeat, heardMs: number): boolean {
    if (this.#ended.signal.aborted) return false;
    if (host === this.#self) {
      // This host sends `left` only under a former name, or as its last heartbeat. So another host has sent this one.
      if (state === 'left') this.#onDeclaredDead();
      else this.#hearOwn(no);
      return false;
    }
    if (this.#gone.has(host)) {
      // That host does not know that it was declared dead.
      if (state !== 'left') this.#announceDead(host);
      return false;
    }
    const known = this.#peers.get(host);
    if (known) known.heardMs = Math.max(known.heardMs, heardMs);
    // A host that leaves never serves again under this name, also if its heartbeats arrive out of order.
    if (known?.state === state || (known?.state === 'leaving' && state === 'serving')) return false;
    if (state === 'left') this.#markGone(host);
    else this.#peers.set(host, { state, heardMs });
    return known !== undefined || state !== 'left';
  }

  #hearOwn(no: number): void {
    // Before `#heardOwnMs` changes, so that an overdue lease is still noticed and becomes doubted. After a doubt,
    // `#regain` wakes the effects that waited for the lease.
    this.#updateLease();
    this.#heardOwnMs = Math.max(this.#heardOwnMs, this.#sentMs.get(no) ?? 0);
    for (const sent of this.#sentMs.keys()) if (sent <= no) this.#sentMs.delete(sent);
  }

  async #sendHeartbeats(): Promise<void> {
    let beatAtMs = this.#clock.monotonicMs();
    while (!this.#ended.signal.aborted) {
      const nowMs = this.#clock.monotonicMs();
      if (nowMs >= beatAtMs) {
        this.#updateLease();
        this.#beat();
        beatAtMs = nowMs + this.#liveness.beatMs;
      }
      // Wakes when the next host becomes overdue, not a heartbeat later.
      await this.#clock.sleep(Math.min(beatAtMs, this.#nextDueMs(nowMs)) - nowMs, this.#ended.signal);
      // Not awaited, because a channel that does not answer must not delay the end of the lease. It does not reject.
      if (!this.#ended.signal.aborted && !this.#isDeclaringSilent) void this.#declareSilentDead();
    }
  }

  /** The time at which the next other host becomes silent for too long; infinite without one. */
  #nextDueMs(nowMs: number): number {
    const due = [...this.#peers.values()].map(({ heardMs }) => heardMs + this.#liveness.ttlMs + 1);
    return Math.min(...due.filter((dueMs) => dueMs > nowMs));
  }

  #updateLease(): void {
    // `#resolveDoubt` does not reject.
    if (!this.#isFresh && this.#lease.apply('overdue')) void this.#resolveDoubt();
    if (this.#lease.name === 'expired' && this.#isFresh) this.#regain();
  }

  /**
   * Asks the channel whether another host has declared this one dead, and waits for an own heartbeat. Waits `leaseMs`
   * at most.
   */
  async #resolveDoubt(): Promise<void> {
    const untilMs = this.#clock.monotonicMs() + this.#liveness.leaseMs;
    const late = new AbortController();
    try {
      this.#beat();
      const isCaughtUp = await Promise.race([
        this.#channel.caughtUp().then(() => true),
        this.#clock.sleep(this.#liveness.leaseMs, late.signal).then(() => false),
      ]);
      // All earlier messages have arrived. This host's own next heartbeat comes after them.
      const isOpen = () => this.#lease.name === 'doubted' && !this.#isFresh && !this.#ended.signal.aborted;
      while (isCaughtUp && isOpen() && this.#clock.monotonicMs() < untilMs)
        await this.#clock.sleep(this.#liveness.beatMs, this.#ended.signal);
      if (this.#lease.name !== 'doubted' || this.#ended.signal.aborted) return;
      if (isCaughtUp && this.#isFresh) {
        this.#regain();
        return;
      }
    } catch (error) {
      this.#log.debug({ error }, 'the host channel is disconnected');
    } finally {
      late.abort();
    }
    if (!this.#ended.signal.aborted && this.#lease.apply('unanswered')) this.#handlers.leaseExpired(false);
  }

  /** Another host has declared this one dead. */
  #onDeclaredDead(): void {
    // Other hosts own what they have claimed, even if this host has never seen its lease expire.
    if (this.#ownState !== 'left' && this.#lease.apply('declared_dead')) this.#handlers.leaseExpired(true);
  }

  #regain(): void {
    this.#lease.apply('heard');
    // The heartbeats of the others did not reach this host meanwhile: none of them counts as silent.
    for (const peer of this.#peers.values()) peer.heardMs = this.#clock.monotonicMs();
    this.#handlers.heardAgain();
  }

  /**
   * Declares silent hosts dead, while this host has its lease. A host that was itself blocked first reads the
   * heartbeats that wait for it.
   */
  async #declareSilentDead(): Promise<void> {
    if (!this.hasLease || this.#silent().length === 0) return;
    this.#isDeclaringSilent = true;
    try {
      await this.#channel.caughtUp();
    } catch (error) {
      this.#log.debug({ error }, 'the host channel is disconnected');
      return;
    } finally {
      this.#isDeclaringSilent = false;
    }
    const silent = this.#silent();
    if (silent.length === 0 || !this.hasLease || this.#ended.signal.aborted) return;
    for (const host of silent) {
      this.#log.warn({ host }, 'a host sends no heartbeat');
      this.#markGone(host);
      this.#announceDead(host);
    }
    this.#handlers.changed();
  }

  /** Announces to all hosts that a host is dead. */
  #announceDead(host: string): void {
    this.#channel.heartbeat({ v: 1, host, state: 'left', no: 0 });
  }

  /** Removes a host that has left or is declared dead, and remembers that its name is dead. */
  #markGone(host: string): void {
    this.#peers.delete(host);
    this.#gone.add(host);
    const [oldest] = this.#gone;
    if (this.#gone.size > GONE_MAX && oldest !== undefined) this.#gone.delete(oldest);
  }

  #silent(): string[] {
    const oldestMs = this.#clock.monotonicMs() - this.#liveness.ttlMs;
    return [...this.#peers].filter(([, { heardMs }]) => heardMs < oldestMs).map(([host]) => host);
  }

  #beat(): void {
    const beat = this.#beatOf(this.#ownState);
    this.#sentMs.set(beat.no, this.#clock.monotonicMs());
    // A heartbeat that never comes back is forgotten.
    if (this.#sentMs.size > OWN_BEATS_PENDING_MAX) this.#sentMs.delete(this.#sentMs.keys().next().value as number);
    this.#channel.heartbeat(beat);
  }

  #beatOf(state: HostBeat['state']): HostBeat {
    return { v: 1, host: this.#self, state, no: ++this.#no };
  }
}
