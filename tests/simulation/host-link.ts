/**
 * The wires between one host and the bus. Each call travels there and back, each way takes time, and either can be lost;
 * a host that is killed never hears of anything again, while what it had already sent may still arrive.
 */
import type {
  ActiveSessions,
  AppendResult,
  Blobs,
  Clock,
  CommandInbox,
  CommandNotification,
  CommandSender,
  HostChannel,
  HostChannelHandlers,
  InboxHandlers,
  Journal,
  Publisher,
  Snapshots,
  StoredCommand,
  StoredRecord,
  Timers,
} from '@coxswain/ports';
import type { SessionRef } from '@coxswain/protocol';
import type { Random } from './random.ts';
import type { SimBus } from './sim-bus.ts';

/** How long a host waits before it takes silence for silence. */
const PATIENCE_MS = 200;
/** How long a late append may be on its way; by then its sender has long given up, and may have begun anew. */
const LATE_MAX_MS = 4_000;

/** See the top of the file. */
export class HostLink {
  readonly name: string;
  readonly clock: Clock;
  /** What was sent before the host was killed and has not arrived may be lost. */
  isDead = false;
  readonly #bus: SimBus;
  readonly #inbox: CommandInbox;
  readonly #line: HostChannel;
  readonly #lag: Random;
  readonly #clockLag: Random;
  #handlers: InboxHandlers | null = null;
  #partitions: readonly number[] | undefined;
  readonly #swallowedUntilMs = new Map<string, number>();

  constructor(bus: SimBus, name: string) {
    this.name = name;
    this.clock = bus.clockOf(name);
    this.#bus = bus;
    this.#inbox = bus.bus.createInbox();
    this.#line = bus.bus.createHostChannel();
    this.#lag = bus.random.fork(`lag of ${name}`);
    this.#clockLag = bus.random.fork(`lag of the clock of ${name}`);
  }

  /** The inbox is let go, as the server does with a host that has gone silent; deliveries under way still come. */
  async loseInbox(): Promise<void> {
    await this.#inbox.close();
  }

  /** The inbox is asked for again, with the partitions that the host has by now. */
  async regainInbox(): Promise<void> {
    if (this.#handlers && !this.isDead) await this.#inbox.open(this.#wired(this.#handlers), this.#partitions);
  }

  readonly journal: Journal = {
    append: (ref, bytes, fence) => this.#append(ref, bytes, fence),
    firstAfter: (ref, fence) => this.#ask((bus) => bus.journal.firstAfter(ref, fence)),
    last: (ref) => this.#ask((bus) => bus.journal.last(ref)),
    read: (ref, fence) => this.#read(ref, fence),
    sessions: (tenant) => this.#sessions((bus) => bus.journal.sessions(tenant)),
    sessionsOf: (partition) => this.#sessions((bus) => bus.journal.sessionsOf(partition)),
  };

  readonly inbox: CommandInbox = {
    incarnation: { stream: '', created: '' },
    open: async (handlers, partitions) => {
      this.#handlers = handlers;
      this.#partitions = partitions;
      await this.#ask(() => this.#inbox.open(this.#wired(handlers), partitions));
    },
    read: (ref, afterSeq, untilSeq) =>
      this.#ask(async () => this.#bus.plant.inboxRead(this.#behind(await this.#inbox.read(ref, afterSeq, untilSeq)))),
    close: () => this.#ask(() => this.#inbox.close()),
  };

  readonly snapshots: Snapshots = {
    put: (ref, bytes, summary) => this.#ask((bus) => bus.snapshots.put(ref, bytes, summary)),
    get: (ref) => this.#ask((bus) => bus.snapshots.get(ref)),
    summaries: (partition) => this.#ask((bus) => bus.snapshots.summaries(partition)),
  };

  readonly timers: Timers = {
    schedule: (ref, timerId, atMs, payload) => {
      const dueAtMs = this.#bus.plant.timer(atMs);
      return this.#ask(async (bus) => {
        if (dueAtMs !== null) await bus.timers.schedule(ref, timerId, dueAtMs, payload);
      });
    },
  };

  /** Asks the bus for its time. Draws of its own: how often a clock is measured moves nothing else. */
  async storeTimeMs(): Promise<number> {
    await this.#bus.world.sleep(this.#clockLag.between(0, this.#bus.slowMs || this.#bus.faults.latencyMs));
    if (this.#bus.isOut) {
      await this.clock.sleep(PATIENCE_MS);
      throw new Error('the bus does not answer');
    }
    const timeMs = Math.floor(this.#bus.world.nowMs());
    await this.clock.sleep(this.#clockLag.between(0, this.#bus.slowMs || this.#bus.faults.latencyMs));
    return timeMs;
  }

  readonly blobs: Blobs = {
    put: async (sha256, bytes) => {
      if (this.#bus.random.chance(this.#bus.faults.blobFails)) {
        await this.clock.sleep(PATIENCE_MS);
        throw unavailable('the object store does not answer');
      }
      return this.#ask((bus) => bus.blobs.put(sha256, bytes));
    },
    get: (sha256) => this.#ask((bus) => bus.blobs.get(sha256)),
  };

  readonly publisher: Publisher = {
    delta: () => {},
    receipt: (subject, receipt) => {
      if (this.#bus.random.chance(this.#bus.faults.receiptLost)) return;
      this.#bus.bus.publisher.receipt(subject, this.#bus.plant.receipt(receipt));
    },
  };

  /** What was stored may be said to have failed: the answer is lost. */
  readonly sender: CommandSender = {
    send: async (ref, verb, payload, options) => {
      const stored = await this.#ask((bus) => bus.sender.send(ref, verb, payload, options));
      if (!this.#bus.random.chance(this.#bus.faults.appendUnanswered)) return stored;
      await this.clock.sleep(PATIENCE_MS);
      throw unavailable('no answer');
    },
  };

  readonly active: ActiveSessions = {
    note: (ref, host) => this.#ask((bus) => bus.active.note(ref, host)),
    forget: (ref, revision) => this.#ask((bus) => bus.active.forget(ref, revision)),
    list: (partition) =>
      this.#ask(async (bus) => {
        const notes = await bus.active.list(partition);
        const told = new Set(this.#bus.plant.sessions(notes.map(({ ref }) => ref)));
        return notes.filter(({ ref }) => told.has(ref));
      }),
  };

  readonly hostChannel: HostChannel = {
    open: (host, handlers) => this.#ask(() => this.#line.open(host, this.#heard(handlers))),
    heartbeat: (beat) => this.#say(() => this.#line.heartbeat(beat)),
    notify: (host, ref, seq) => this.#say(() => this.#line.notify(host, ref, seq)),
    announceSessionLeft: (ref) => this.#say(() => this.#line.announceSessionLeft(ref)),
    caughtUp: () => this.#ask(() => Promise.resolve()),
    close: () => this.#line.close(),
  };

  /** What is said between hosts may be lost, and comes whenever it does. */
  #say(say: () => void): void {
    if (this.#bus.random.chance(this.#bus.faults.receiptLost)) return;
    void this.#arrives(this.#bus.latency()).then((isThere) => {
      if (isThere) say();
    });
  }

  #heard(handlers: HostChannelHandlers): HostChannelHandlers {
    const later = (hear: () => void) => void this.clock.sleep(this.#bus.latency()).then(hear);
    return {
      heartbeat: (beat) => later(() => handlers.heartbeat(beat)),
      notified: (ref, seq) => later(() => handlers.notified(ref, seq)),
      sessionLeft: (ref) => later(() => handlers.sessionLeft(ref)),
    };
  }

  // ---- there and back ----

  /** One question to the bus. Rejects where it does not answer. */
  async #ask<T>(question: (bus: SimBus['bus']) => Promise<T>): Promise<T> {
    const isLost = this.#bus.random.chance(this.#bus.faults.readFails);
    if (!isLost && (await this.#arrives(this.#bus.latency()))) {
      const answer = await question(this.#bus.bus);
      await this.clock.sleep(this.#bus.latency());
      return answer;
    }
    await this.clock.sleep(PATIENCE_MS);
    throw unavailable('the bus does not answer');
  }

  /** What has been sent arrives by itself, whatever becomes of its sender. @returns whether the bus was there. */
  async #arrives(afterMs: number): Promise<boolean> {
    await this.#bus.world.sleep(afterMs);
    // A killed process leaves some of what it sent on the wire, and takes the rest with it.
    if (this.isDead && this.#bus.random.chance(0.5)) return new Promise(() => {});
    return !this.#bus.isOut;
  }

  async #append(ref: SessionRef, bytes: Uint8Array, fence: number): Promise<AppendResult> {
    const { random, faults } = this.#bus;
    const fault = random.weighted([
      [faults.appendLost, 'lost'],
      [faults.appendUnanswered, 'unanswered'],
      [faults.appendLate, 'late'],
      [1, 'none'],
    ] as const);
    const silence = async (): Promise<AppendResult> => {
      await this.clock.sleep(PATIENCE_MS);
      return { status: 'ambiguous', cause: 'no answer' };
    };
    if (fault === 'lost' || this.#swallows(ref)) return silence();
    if (fault === 'late') {
      void this.#late(ref, bytes, fence);
      return silence();
    }
    if (!(await this.#arrives(this.#bus.latency()))) return silence();
    const result = await this.#bus.append(this.name, ref, bytes, fence);
    if (fault === 'unanswered') return silence();
    await this.clock.sleep(this.#bus.latency());
    return result;
  }

  #swallows(ref: SessionRef): boolean {
    return (this.#swallowedUntilMs.get(ref.sessionId) ?? 0) > this.clock.nowMs();
  }

  /**
   * An append that its sender has given up, and that arrives all the same; but not from beyond the grave. What is sent
   * again meanwhile is lost, for about as long as a sender keeps trying.
   */
  async #late(ref: SessionRef, bytes: Uint8Array, fence: number): Promise<void> {
    const { random } = this.#bus;
    this.#swallowedUntilMs.set(ref.sessionId, this.clock.nowMs() + random.between(0, LATE_MAX_MS));
    await this.#bus.world.sleep(random.between(0, LATE_MAX_MS));
    if (!this.isDead && !this.#bus.isOut) await this.#bus.append(this.name, ref, bytes, fence);
  }

  #behind(commands: readonly StoredCommand[]): readonly StoredCommand[] {
    const { faults } = this.#bus;
    if (!this.#lag.chance(faults.readBehind)) return commands;
    return commands.slice(0, this.#lag.int(commands.length));
  }

  async *#read(ref: SessionRef, fence?: number): AsyncIterable<StoredRecord> {
    const records = await this.#ask(async (bus) => {
      const list: StoredRecord[] = [];
      for await (const record of bus.journal.read(ref, fence)) list.push(record);
      return list;
    });
    yield* records;
  }

  async *#sessions(of: (bus: SimBus['bus']) => AsyncIterable<SessionRef>): AsyncIterable<SessionRef> {
    const refs = await this.#ask(async (bus) => {
      const list: SessionRef[] = [];
      for await (const ref of of(bus)) list.push(ref);
      return list;
    });
    yield* this.#bus.plant.sessions(refs);
  }

  // ---- deliveries ----

  #wired(handlers: InboxHandlers): InboxHandlers {
    return {
      notify: (notification) => {
        const { random, faults } = this.#bus;
        void this.#deliver(handlers, notification);
        if (random.chance(faults.deliveryRepeated)) void this.#deliver(handlers, notification);
      },
      unroutable: (command) => void this.clock.sleep(this.#bus.latency()).then(() => handlers.unroutable(command)),
    };
  }

  async #deliver(handlers: InboxHandlers, { ref, seq, ack }: CommandNotification): Promise<void> {
    const { random, faults } = this.#bus;
    await this.clock.sleep(random.chance(faults.deliveryDelayed) ? random.between(0, 2_000) : this.#bus.latency());
    handlers.notify({ ref, seq, ack: () => void this.#acknowledge(ack) });
  }

  async #acknowledge(ack: () => void): Promise<void> {
    if (this.#bus.random.chance(this.#bus.faults.ackLost)) return;
    if (await this.#arrives(this.#bus.latency())) ack();
  }
}

/** A bus that cannot be reached, as the adapter says it. */
function unavailable(message: string): Error {
  return Object.assign(new Error(message), { code: 'nats_unreachable' });
}
