/**
 * Which hosts live, as this one hears it.
 *
 * PEERS-1  A host is alive while its last heartbeat is recent by this host's own clock. No two clocks are compared.
 * PEERS-2 Its own beats come back over the same line. While they do not, it knows nothing of the others, and its lease runs
 *     out before they can have stopped believing it: it begins nothing.
 * PEERS-3 Who is given up is told so, in its own name, and its name is dead from then on. So a host whose lease ran out asks
 *     the line what was said meanwhile: one that nobody has given up was merely slow, and goes on; one that was, or that
 *     hears nothing, leaves everything. To leave what nobody has taken would make a busy machine busier still.
 * PEERS-4 All of this only says where work should go. Who may write is decided by a journal's fence.
 */
import type { Clock, HostLine, Log } from '@coxswain/ports';
import type { HostBeat, HostLiveness, SessionRef } from '@coxswain/protocol';
import { Lease } from './host-state.ts';

/** Contract: these return at once and do not throw. */
export interface HostPeersHandlers {
  /** Other hosts serve, or live, than before. */
  changed(): void;
  /**
   * The lease has expired.
   * @param isDeclaredDead another host has declared this host dead: its name stays dead. Otherwise it is unknown what the
   *   others have decided.
   */
  leaseExpired(isDeclaredDead: boolean): void;
  /** The host is heard again, after an expired lease or a doubt. */
  heardAgain(): void;
  /** Another host was rung for a session of this one. */
  rung(ref: SessionRef, seq: number): void;
  /** Some host has let a session go. */
  released(ref: SessionRef): void;
}

/** Beats that have not come back. */
const BEATS_UNDER_WAY_MAX = 64;
/** Beats that may be missed of a host that is known from a kept beat only. */
const BEATS_AWAITED = 3;
/** Names of hosts that have gone, which are remembered so that nothing late brings them back. */
const GONE_MAX = 256;

interface Peer {
  state: HostBeat['state'];
  heardMs: number;
}

/** See the top of the file. */
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

  /** The name under which this host is known now. */
  get self(): string {
    return this.#self;
  }

  /** The hosts that take partitions. */
  get serving(): readonly string[] {
    const others = [...this.#peers].filter(([, { state }]) => state === 'serving').map(([host]) => host);
    return (this.#state === 'serving' ? [this.#self, ...others] : others).sort();
  }

  /** Whether any other host lives. */
  get hasOthers(): boolean {
    return this.#peers.size > 0;
  }

  /** Whether a host lives. */
  isLive(host: string): boolean {
    return host === this.#self || this.#peers.has(host);
  }

  /** Whether a host has lived, and lives no more. One that was never heard of may live all the same. */
  isGone(host: string): boolean {
    return this.#gone.has(host);
  }

  /** Whether this host may begin anything: it was heard a moment ago. */
  get hasLease(): boolean {
    return this.#lease.name === 'held' && this.#isFresh;
  }

  get #isFresh(): boolean {
    return this.#clock.monotonicMs() - this.#heardOwnMs < this.#liveness.leaseMs;
  }

  /** Joins the hosts, as one that serves, and goes on saying so. Resolves when it is known who else lives. */
  async join(): Promise<void> {
    await this.#open();
    void this.#live();
  }

  /** Goes on under another name: what the old one had is anybody's. */
  async rename(self: string): Promise<void> {
    this.#line.beat(this.#beatOf('left'));
    this.#self = self;
    await this.#open();
    this.#beat();
  }

  /** Takes no partitions any more. */
  retire(): void {
    this.#state = 'leaving';
    this.#beat();
  }

  /** Is gone. */
  leave(): void {
    if (this.#ended.signal.aborted) return;
    this.#state = 'left';
    this.#beat();
    this.vanish();
  }

  /** Is heard no more, as after a crash. */
  vanish(): void {
    this.#ended.abort();
    this.#line.close();
  }

  /** Tells a host of a command for a session that it works on. */
  ring(host: string, ref: SessionRef, seq: number): void {
    this.#line.ring(host, ref, seq);
  }

  /** Tells all that a session waits for its next host. */
  release(ref: SessionRef): void {
    this.#line.release(ref);
  }

  async #open(): Promise<void> {
    let isOpen = false;
    const { ttlMs, beatMs } = this.#liveness;
    // What the line has kept may be a dead host's: it is believed until a few beats more would have come.
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
      // Nobody but another host says this in its name.
      if (state === 'left') this.#declaredDead();
      else this.#hearOwn(no);
      return;
    }
    if (this.#gone.has(host)) {
      // It has not heard of it.
      if (state !== 'left') this.#giveUp(host);
      return;
    }
    const known = this.#peers.get(host);
    if (known) known.heardMs = Math.max(known.heardMs, heardMs);
    // Nobody who leaves comes back under the same name, whichever beat arrives last.
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
      // A host that falls silent is missed when it is due, and not a beat later.
      await this.#clock.sleep(Math.min(beatAtMs, this.#nextDueMs(nowMs)) - nowMs, this.#ended.signal);
      if (!this.#ended.signal.aborted) await this.#mindOthers();
    }
  }

  /** When the next of the others will have been silent for too long, if nothing more is heard of it. */
  #nextDueMs(nowMs: number): number {
    const due = [...this.#peers.values()].map(({ heardMs }) => heardMs + this.#liveness.ttlMs + 1);
    return Math.min(...due.filter((dueMs) => dueMs > nowMs));
  }

  #mindLease(): void {
    // Does not reject.
    if (!this.#isFresh && this.#lease.apply('overdue')) void this.#resolveDoubt();
    if (this.#lease.name === 'expired' && this.#isFresh) this.#regain();
  }

  /** Asks the line what became of this host while it was not heard, for as long as a lease at most. */
  async #resolveDoubt(): Promise<void> {
    const untilMs = this.#clock.monotonicMs() + this.#liveness.leaseMs;
    const late = new AbortController();
    try {
      this.#beat();
      const isCaughtUp = await Promise.race([
        this.#line.caughtUp().then(() => true),
        this.#clock.sleep(this.#liveness.leaseMs, late.signal).then(() => false),
      ]);
      // What was sent by then has come; this host's own next beat comes after it.
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
    // What others have taken is theirs, also where this host never saw its lease run out.
    if (this.#state !== 'left' && this.#lease.apply('declared_dead')) this.#handlers.leaseExpired(true);
  }

  #regain(): void {
    this.#lease.apply('heard');
    // What they said meanwhile went past this host.
    for (const peer of this.#peers.values()) peer.heardMs = this.#clock.monotonicMs();
    this.#handlers.heardAgain();
  }

  /** A host that was held up itself has beats waiting for it, and takes nobody for dead before it has heard them. */
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

  /** Tells a host, and all others, that nobody believes in it any more. */
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
    // What never comes back need not be remembered for ever.
    if (this.#sentMs.size > BEATS_UNDER_WAY_MAX) this.#sentMs.delete(this.#sentMs.keys().next().value as number);
    this.#line.beat(beat);
  }

  #beatOf(state: HostBeat['state']): HostBeat {
    return { v: 1, host: this.#self, state, no: ++this.#no };
  }
}
