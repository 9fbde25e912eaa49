/**
 * The liveness of other hosts, as this one observes it.
 *
 * PEERS-1  A host is alive while its last heartbeat is recent by this host's own clock. No two clocks are compared.
 * PEERS-2  Its own heartbeats return over the same channel. Without them it knows nothing of the others, and its lease
 *     expires before they can have declared it dead. Then it starts nothing.
 * PEERS-3  A host that is declared dead is notified under its name, and this name stays dead. A host with an expired
 *     lease asks the channel what was sent meanwhile. If no host declared it dead, it was only slow and continues. If
 *     one did, or if the channel does not answer, it leaves all sessions. Leaving sessions without a need would add
 *     load to a busy machine.
 * PEERS-4  All of this only directs work. The fence of a journal decides who may write.
 */
import type { Clock, HostLine, Log } from '@coxswain/ports';
import type { HostBeat, HostLiveness, SessionRef } from '@coxswain/protocol';
import { Lease } from './host-state.ts';

/** Contract: these return at once and do not throw. */
export interface HostPeersHandlers {
  /** The set of hosts that serve or are alive has changed. */
  changed(): void;
  /**
   * The lease has expired.
   * @param isDeclaredDead another host has declared this host dead: its name stays dead. Otherwise it is unknown what the
   *   others have decided.
   */
  leaseExpired(isDeclaredDead: boolean): void;
  /** The host is heard again, after an expired lease or a doubt. */
  heardAgain(): void;
  /** Another host notifies this one of a command for its session. */
  rung(ref: SessionRef, seq: number): void;
  /** A host has released a session. */
  released(ref: SessionRef): void;
}

/** Maximum of own heartbeats in flight. */
const BEATS_UNDER_WAY_MAX = 64;
/** Heartbeats that a host known only from a stored heartbeat may miss. */
const BEATS_AWAITED = 3;
/** Remembered names of dead hosts, so that no late heartbeat revives them. */
const GONE_MAX = 256;

interface Peer {
  state: HostBeat['state'];
  heardMs: number;
}

/** Observes the other hosts, and holds this host's lease. */
export class HostPeers {
  readonly #line: HostLine;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #handlers: HostPeersHandlers;
  readonly #liveness: HostLiveness;
  readonly #peers = new Map<string, Peer>();
  readonly #sentMs = new Map<number, number>();
  readonly #ended = new AbortController();
  #self: string;
  #state: HostBeat['state'] = 'serving';
  #no = 0;
  #heardOwnMs: number;
  readonly #lease = new Lease();
  readonly #gone = new Set<string>();

  constructor(
    { hostLine, clock, log }: { readonly hostLine: HostLine; readonly clock: Clock; readonly log: Log },
    self: string,
    handlers: HostPeersHandlers,
    liveness: HostLiveness,
  ) {
    this.#liveness = liveness;
    this.#line = hostLine;
    this.#clock = clock;
    this.#log = log;
    this.#self = self;
    this.#handlers = handlers;
    this.#heardOwnMs = clock.monotonicMs();
  }

  /** The current name of this host. */
  get self(): string {
    return this.#self;
  }

  /** The hosts that accept partitions. */
  get serving(): readonly string[] {
    const others = [...this.#peers].filter(([, { state }]) => state === 'serving').map(([host]) => host);
    return (this.#state === 'serving' ? [this.#self, ...others] : others).sort();
  }

  /** Whether any other host is alive. */
  get hasOthers(): boolean {
    return this.#peers.size > 0;
  }

  /** Whether a host is alive. */
  isLive(host: string): boolean {
    return host === this.#self || this.#peers.has(host);
  }

  /** Whether a host was alive and is dead. A host without any heartbeat may still be alive. */
  isGone(host: string): boolean {
    return this.#gone.has(host);
  }

  /** Whether this host may start work: it received its own last heartbeat in time. */
  get hasLease(): boolean {
    return this.#lease.name === 'held' && this.#isFresh;
  }

  get #isFresh(): boolean {
    return this.#clock.monotonicMs() - this.#heardOwnMs < this.#liveness.leaseMs;
  }

  /** Joins the hosts as a serving one, and sends heartbeats. Resolves when the other hosts are known. */
  async join(): Promise<void> {
    await this.#open();
    void this.#live();
  }

  /** Continues under another name: any host may claim the sessions of the old one. */
  async rename(self: string): Promise<void> {
    this.#line.beat(this.#beatOf('left'));
    this.#self = self;
    await this.#open();
    this.#beat();
  }

  /** Accepts no more partitions. */
  retire(): void {
    this.#state = 'leaving';
    this.#beat();
  }

  /** Leaves the hosts. */
  leave(): void {
    if (this.#ended.signal.aborted) return;
    this.#state = 'left';
    this.#beat();
    this.vanish();
  }

  /** Stops its heartbeats, like a crash. */
  vanish(): void {
    this.#ended.abort();
    this.#line.close();
  }

  /** Notifies a host of a command for a session that it owns. */
  ring(host: string, ref: SessionRef, seq: number): void {
    this.#line.ring(host, ref, seq);
  }

  /** Notifies all hosts that a session waits for its next owner. */
  release(ref: SessionRef): void {
    this.#line.release(ref);
  }

  async #open(): Promise<void> {
    let isOpen = false;
    const { ttlMs, beatMs } = this.#liveness;
    // A stored heartbeat may be a dead host's: it counts only until a few more would have arrived.
    const ageMs = () => (isOpen ? 0 : Math.max(0, ttlMs - BEATS_AWAITED * beatMs));
    await this.#line.open(this.#self, {
      beat: (beat) => this.#hear(beat, this.#clock.monotonicMs() - ageMs()),
      rung: (ref, seq) => this.#handlers.rung(ref, seq),
      released: (ref) => this.#handlers.released(ref),
    });
    isOpen = true;
    this.#heardOwnMs = this.#clock.monotonicMs();
  }

  #hear({ host, state, no }: HostBeat, heardMs: number): void {
    if (this.#ended.signal.aborted) return;
    if (host === this.#self) {
      // Only another host sends this under this host's name.
      if (state === 'left') this.#declaredDead();
      else this.#hearOwn(no);
      return;
    }
    if (this.#gone.has(host)) {
      // The other host does not know that it was declared dead.
      if (state !== 'left') this.#giveUp(host);
      return;
    }
    const known = this.#peers.get(host);
    if (known) known.heardMs = Math.max(known.heardMs, heardMs);
    // A leaving host never returns under the same name, whichever heartbeat arrives last.
    if (known?.state === state || (known?.state === 'leaving' && state === 'serving')) return;
    if (state === 'left') this.#forget(host);
    else this.#peers.set(host, { state, heardMs });
    if (known || state !== 'left') this.#handlers.changed();
  }

  #hearOwn(no: number): void {
    // A lease that had expired kept effects from starting, also if it is held again by now.
    this.#mindLease();
    this.#heardOwnMs = Math.max(this.#heardOwnMs, this.#sentMs.get(no) ?? 0);
    for (const sent of this.#sentMs.keys()) if (sent <= no) this.#sentMs.delete(sent);
  }

  async #live(): Promise<void> {
    let beatAtMs = this.#clock.monotonicMs();
    while (!this.#ended.signal.aborted) {
      const nowMs = this.#clock.monotonicMs();
      if (nowMs >= beatAtMs) {
        this.#mindLease();
        this.#beat();
        beatAtMs = nowMs + this.#liveness.beatMs;
      }
      // A silent host is declared dead on time, not one heartbeat later.
      await this.#clock.sleep(Math.min(beatAtMs, this.#nextDueMs(nowMs)) - nowMs, this.#ended.signal);
      if (!this.#ended.signal.aborted) await this.#mindOthers();
    }
  }

  /** The time at which the next of the other hosts will be overdue. */
  #nextDueMs(nowMs: number): number {
    const due = [...this.#peers.values()].map(({ heardMs }) => heardMs + this.#liveness.ttlMs + 1);
    return Math.min(...due.filter((dueMs) => dueMs > nowMs));
  }

  #mindLease(): void {
    // Does not reject.
    if (!this.#isFresh && this.#lease.apply('overdue')) void this.#resolveDoubt();
    if (this.#lease.name === 'expired' && this.#isFresh) this.#regain();
  }

  /** Asks the channel what was sent while this host was not heard, for at most the time of a lease. */
  async #resolveDoubt(): Promise<void> {
    const untilMs = this.#clock.monotonicMs() + this.#liveness.leaseMs;
    const late = new AbortController();
    try {
      this.#beat();
      const isCaughtUp = await Promise.race([
        this.#line.caughtUp().then(() => true),
        this.#clock.sleep(this.#liveness.leaseMs, late.signal).then(() => false),
      ]);
      // Everything sent so far has arrived; the next heartbeat of this host comes after it.
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

  #declaredDead(): void {
    // Sessions that others claimed are theirs, even if this host never saw its lease expire.
    if (this.#state !== 'left' && this.#lease.apply('declared_dead')) this.#handlers.leaseExpired(true);
  }

  #regain(): void {
    this.#lease.apply('heard');
    // Heartbeats of the others were lost meanwhile.
    for (const peer of this.#peers.values()) peer.heardMs = this.#clock.monotonicMs();
    this.#handlers.heardAgain();
  }

  /** After a delay of its own, a host has unread heartbeats: it reads them before it declares another one dead. */
  async #mindOthers(): Promise<void> {
    if (!this.hasLease || this.#silent().length === 0) return;
    try {
      await this.#line.caughtUp();
    } catch (error) {
      this.#log.debug({ error }, 'the host channel is disconnected');
      return;
    }
    const silent = this.#silent();
    if (silent.length === 0 || !this.hasLease || this.#ended.signal.aborted) return;
    for (const host of silent) {
      this.#log.warn({ host }, 'a host sends no heartbeat');
      this.#forget(host);
      this.#giveUp(host);
    }
    this.#handlers.changed();
  }

  /** Declares a host dead, and notifies it and all others. */
  #giveUp(host: string): void {
    this.#line.beat({ v: 1, host, state: 'left', no: 0 });
  }

  #forget(host: string): void {
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
    const beat = this.#beatOf(this.#state);
    this.#sentMs.set(beat.no, this.#clock.monotonicMs());
    // A lost heartbeat need not be remembered indefinitely.
    if (this.#sentMs.size > BEATS_UNDER_WAY_MAX) this.#sentMs.delete(this.#sentMs.keys().next().value as number);
    this.#line.beat(beat);
  }

  #beatOf(state: HostBeat['state']): HostBeat {
    return { v: 1, host: this.#self, state, no: ++this.#no };
  }
}
