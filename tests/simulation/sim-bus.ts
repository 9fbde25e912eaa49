/** The bus of a simulation: the real one in memory, the faults that stand around it, and what everybody may know of it. */
import { createMemoryBus, type MemoryBus } from '@coxswain/adapter-memory';
import type { AppendResult, Clock, StoredCommand } from '@coxswain/ports';
import type { Message, Receipt, SessionRef, SessionStatus, ToolTraits } from '@coxswain/protocol';
import { sha256Hex } from '@coxswain/session';
import type { VirtualTime } from '../../libs/session/test/virtual-time.ts';
import type { FaultRates } from './generator.ts';
import type { History } from './history.ts';
import type { Random } from './random.ts';
import { ServedBus } from './served/served-bus.ts';

/** Faults that are no part of the nemesis: tests of the checkers plant them to see them caught. */
export interface Plant {
  /** What a host reads of a session's inbox. */
  inboxRead(commands: readonly StoredCommand[]): readonly StoredCommand[];
  /** What an append really does. */
  append(
    append: (fence: number) => Promise<AppendResult>,
    fence: number,
    newest: () => Promise<number>,
  ): Promise<AppendResult>;
  /** Which of its sessions a host is told of when it starts. */
  sessions(refs: readonly SessionRef[]): readonly SessionRef[];
  /** What is told to those who asked. */
  receipt(receipt: Receipt): Receipt;
  /** When a timer that a host puts into the store is due; null: the store forgets it. */
  timer(dueAtMs: number): number | null;
  /** What a model is shown of a prompt. */
  shown(messages: readonly Message[]): readonly Message[];
  /** What a host says of a session. */
  status(status: SessionStatus): SessionStatus;
  /** How often a tool is really run for one call. */
  readonly runsPerCall: number;
  /** What an instance receives, as text; null: nothing. */
  received(text: string): string | null;
  /** Whose records are taken away when a session's are. */
  purged(ref: SessionRef): SessionRef;
  /** What a tool says of itself. */
  traits(tool: string, traits: Partial<ToolTraits>): Partial<ToolTraits>;
}

/** Nothing is planted. */
export const NO_PLANT: Plant = {
  inboxRead: (commands) => commands,
  append: (append, fence) => append(fence),
  sessions: (refs) => refs,
  receipt: (receipt) => receipt,
  timer: (dueAtMs) => dueAtMs,
  shown: (messages) => messages,
  status: (status) => status,
  runsPerCall: 1,
  received: (text) => text,
  purged: (ref) => ref,
  traits: (_tool, traits) => traits,
};

/** How far the wall clocks of hosts are off, milliseconds. */
const SKEWS_MS = [-600_000, 0, 600_000];

/** See the top of the file. */
export class SimBus {
  readonly bus: MemoryBus;
  readonly world: Clock;
  readonly random: Random;
  readonly plant: Plant;
  faults: FaultRates;
  /** The bus of served work. */
  readonly served: ServedBus;
  /** Each way takes up to so long, whatever else is said; 0 where it takes what it usually does. */
  slowMs = 0;
  readonly #time: VirtualTime;
  #isOut = false;
  readonly #history: History;
  readonly #stored = new Map<string, Uint8Array[]>();

  constructor(time: VirtualTime, random: Random, history: History, faults: FaultRates, plant: Plant) {
    this.#time = time;
    this.#history = history;
    this.world = time.clock('world');
    this.bus = createMemoryBus(this.world);
    this.random = random;
    this.faults = faults;
    this.plant = plant;
    this.served = new ServedBus(
      {
        latency: (drawn) => this.latency(drawn),
        lossRate: () => this.faults.servedLost,
        received: (text) => plant.received(text),
      },
      random.fork('served'),
    );
  }

  /** The bus is unreachable for every process. */
  get isOut(): boolean {
    return this.#isOut;
  }

  set isOut(isOut: boolean) {
    this.#isOut = isOut;
    this.served.setOut(isOut);
  }

  /**
   * A host's own clock: ten minutes ahead, ten minutes behind or right, and its machine has been up for another time than
   * the others'. Giving way takes a moment, so that whatever else is due may come in between.
   */
  clockOf(host: string): Clock {
    const clock = this.#time.clock(host);
    const random = this.random.fork(`clock of ${host}`);
    const skewMs = random.pick(SKEWS_MS);
    const upMs = random.int(1_000_000_000);
    return {
      ...clock,
      nowMs: () => clock.nowMs() + skewMs,
      monotonicMs: () => clock.monotonicMs() + upMs,
      yield: () => clock.sleep(this.random.between(0, 0.2)),
    };
  }

  /** The time that one way takes: mostly short, now and then long. */
  latency(random = this.random): number {
    const { latencyMs } = this.faults;
    const usualMs = random.chance(0.02) ? 30 * latencyMs : latencyMs;
    return random.between(0, this.slowMs > 0 ? this.slowMs : usualMs);
  }

  /** How many records of a session are stored. */
  recordsOf(session: string): number {
    return this.writtenOf(session).length;
  }

  /** Everything that was ever stored of a session. */
  writtenOf(session: string): readonly Uint8Array[] {
    return this.#stored.get(session) ?? [];
  }

  /** The one place where records come into being. */
  async append(by: string, ref: SessionRef, bytes: Uint8Array, fence: number): Promise<AppendResult> {
    const result = await this.plant.append(
      (at) => this.bus.journal.append(ref, bytes, at),
      fence,
      async () => (await this.bus.journal.last(ref))?.fence ?? 0,
    );
    if (result.status === 'stored') {
      const written = this.#stored.get(ref.sessionId) ?? [];
      const n = written.push(bytes);
      this.#stored.set(ref.sessionId, written);
      this.#history.push({ what: 'stored', session: ref.sessionId, n, by, hash: sha256Hex(bytes).slice(0, 16) });
    }
    return result;
  }
}
