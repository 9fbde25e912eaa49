/**
 * The processes that serve tools, personas and hooks: some of each kind, which outlive hosts and share the requests. They
 * are killed, stand still, or are stopped in order; at any time, or just when a request has come so far. What they do
 * with requests and orders is the real thing, ledger and all; what is simulated is that they are processes.
 */
import { createWorkReceiver } from '@coxswain/bus';
import { SERVED_LIVENESS, type ServedKind } from '@coxswain/protocol';
import type { VirtualTime } from '../../../libs/session/test/virtual-time.ts';
import type { History } from '../history.ts';
import type { Random } from '../random.ts';
import type { ServedBus } from './served-bus.ts';
import { isAwake, isFrozen, type Progress, type ServedProcess, type ServedWork } from './served-process.ts';

/** What a process serves. */
export type Serve = (process: ServedProcess) => readonly ServedWork[];

/** How an instance fails. */
export type StrikeHow = 'kill' | 'freeze' | 'stop';

/** A strike at an instance. */
export interface Strike {
  readonly of: ServedKind;
  readonly how: StrikeHow;
  /** At once, or as soon as an instance of the kind has a request that is so far. */
  readonly when: 'now' | Progress;
  /** How long it stands still, or until another one takes its place, milliseconds. */
  readonly forMs: number;
  /** Every instance of the kind is struck, at once. */
  readonly all?: true;
}

/** How the history calls what happens to instances. */
export const KILLED = 'an instance is killed';
/** It has ended in order. */
export const STOPPED = 'an instance has stopped';
/** Its requests end here, and it with them. */
export const GIVES_UP = 'an instance gives up its requests';

/** The time that work may take at an instance that is stopped, milliseconds; then it is given up. */
const DRAIN_MAX_MS = 500;
/** After a request has started, its instance is struck within one of these times, milliseconds. */
const STRUCK_WITHIN_MS = [0, 50, 600, 2_000];

/** What processes need of the world around them. */
export interface ServedWorld {
  readonly time: VirtualTime;
  readonly bus: ServedBus;
  readonly history: History;
  readonly random: Random;
}

interface Running {
  readonly works: readonly ServedWork[];
  readonly unsubscribe: { readonly group: () => void; readonly all: () => void };
}

/** See the top of the file. */
export class ServedProcesses {
  /** All that there ever were. */
  readonly all: ServedProcess[] = [];
  readonly #world: ServedWorld;
  readonly #serves: Readonly<Partial<Record<ServedKind, Serve>>>;
  readonly #running = new Map<ServedProcess, Running>();
  readonly #armed: Strike[] = [];
  #started = 0;

  /** @param serves what the processes of each kind serve. */
  constructor(world: ServedWorld, serves: Readonly<Partial<Record<ServedKind, Serve>>>) {
    this.#world = world;
    this.#serves = serves;
    world.bus.traffic = {
      requested: (instance, key) => this.#requested(instance, key),
      reported: (instance, key, type) => this.#reported(instance, key, type),
    };
    for (const kind of Object.keys(serves) as ServedKind[])
      for (let count = 2 + world.random.int(2); count > 0; count--) this.#start(kind);
  }

  /** Strikes an instance of a kind, now or as soon as one has a request that is so far. */
  strike(strike: Strike): void {
    if (strike.when !== 'now') {
      this.#armed.push(strike);
      return;
    }
    const able = this.all.filter((one) => one.kind === strike.of && this.#isAble(one));
    const victims = strike.all || able.length === 0 ? able : [this.#world.random.pick(able)];
    for (const one of victims) this.#hit(one, strike);
  }

  /** What is armed strikes no more. */
  disarm(): void {
    this.#armed.length = 0;
  }

  /** An instance has started work. */
  started(process: ServedProcess, key: string): void {
    process.open.set(key, 'started');
    this.#fire(process, 'started');
  }

  // ---- faults ----

  #isAble(process: ServedProcess): boolean {
    return process.state === 'serving' && isAwake(process, this.#world.time.elapsedMs);
  }

  #fire(process: ServedProcess, when: Progress): void {
    const place = this.#armed.findIndex((one) => one.of === process.kind && one.when === when);
    const [strike] = place < 0 || !this.#isAble(process) ? [] : this.#armed.splice(place, 1);
    if (!strike) return;
    const { random, time } = this.#world;
    // In the middle of what it does now, or of its work.
    const delayMs = when === 'started' ? random.between(0, random.pick(STRUCK_WITHIN_MS)) : 0;
    void time
      .clock()
      .sleep(delayMs)
      .then(() => {
        if (this.#isAble(process)) this.#hit(process, strike);
      });
  }

  #hit(process: ServedProcess, { how, forMs }: Strike): void {
    if (how === 'stop') return void this.#stop(process, forMs);
    for (const [key, progress] of process.open)
      this.#struck(process, how, progress === 'started' ? 'after' : 'between', key);
    if (how === 'kill') this.#kill(process, forMs);
    else this.#freeze(process, forMs);
  }

  #kill(process: ServedProcess, downMs: number): void {
    const { time } = this.#world;
    process.diedMs = time.elapsedMs;
    process.open.clear();
    this.#note(process, KILLED);
    this.#end(process);
    void time
      .clock()
      .sleep(downMs)
      .then(() => this.#start(process.kind));
  }

  #freeze(process: ServedProcess, forMs: number): void {
    const { time } = this.#world;
    process.freezes.push({ fromMs: time.elapsedMs, untilMs: time.elapsedMs + forMs });
    time.hold(process.name, time.nowMs + forMs);
    this.#note(process, `an instance stands still for ${Math.round(forMs)} ms`);
  }

  /** As `serveWork` stops: what runs may end, and is then given up. */
  async #stop(process: ServedProcess, downMs: number): Promise<void> {
    const running = this.#running.get(process);
    if (!running) return;
    const { clock } = process;
    process.state = 'draining';
    this.#note(process, 'an instance is stopped');
    running.unsubscribe.group();
    for (const { onDraining } of running.works) onDraining?.();
    const drained = Promise.all(running.works.map(({ work }) => work.drain()));
    const isLate = await Promise.race([drained.then(() => false), clock.sleep(DRAIN_MAX_MS).then(() => true)]);
    if (isLate) {
      this.#note(process, GIVES_UP);
      for (const [key, progress] of process.open)
        if (progress === 'started') this.#struck(process, 'stop', 'after', key);
      for (const { work } of running.works) work.abortAll('its process is stopping');
      await Promise.race([drained, clock.sleep(DRAIN_MAX_MS)]);
    }
    process.state = 'gone';
    running.unsubscribe.all();
    // Its last messages leave with it.
    await clock.sleep(1);
    process.diedMs = this.#world.time.elapsedMs;
    this.#note(process, STOPPED);
    this.#end(process);
    await this.#world.time.clock().sleep(downMs);
    this.#start(process.kind);
  }

  #end(process: ServedProcess): void {
    this.#running.delete(process);
    this.#world.bus.disconnect(process.name);
    this.#world.time.kill(process.name);
  }

  // ---- serving ----

  #start(kind: ServedKind): void {
    const serve = this.#serves[kind];
    if (!serve) return;
    const { time, bus } = this.#world;
    const name = `${kind}-${++this.#started}`;
    const clock = time.clock(name);
    const process: ServedProcess = {
      name,
      kind,
      clock,
      startedMs: time.elapsedMs,
      diedMs: null,
      freezes: [],
      state: 'serving',
      open: new Map(),
    };
    const connection = bus.connect(name, clock, process);
    const works = serve(process);
    const receivers = works.map(({ at, work }) => {
      const receiver = createWorkReceiver(connection, {
        at,
        instance: name,
        work,
        problem: (said) => this.#note(process, said),
      });
      const [group, ...own] = [...receiver.subscribeToRequests(), ...receiver.subscribeToOrders()];
      return { group, own };
    });
    this.#running.set(process, {
      works,
      unsubscribe: {
        group: () => receivers.forEach(({ group }) => void group?.unsubscribe()),
        all: () => receivers.forEach(({ own }) => void own.forEach((one) => void one.unsubscribe())),
      },
    });
    this.all.push(process);
    this.#note(process, 'an instance starts');
  }

  #requested(process: ServedProcess, key: string): void {
    const nowMs = this.#world.time.elapsedMs;
    if (isFrozen(process, nowMs)) this.#struck(process, 'freeze', 'before', key);
    const isFresh = ({ kind, diedMs, state }: ServedProcess) =>
      kind === process.kind && state !== 'gone' && diedMs !== null && nowMs - diedMs < SERVED_LIVENESS.ttlMs;
    const dead = this.all.find(isFresh);
    if (dead) this.#struck(dead, 'kill', 'before', key);
    if (!process.open.has(key)) process.open.set(key, 'requested');
    this.#fire(process, 'requested');
  }

  #reported(process: ServedProcess, key: string, type: string): void {
    if (type === 'ready') {
      process.open.set(key, 'held');
      this.#fire(process, 'held');
    } else if (!['running', 'progress', 'feedback'].includes(type)) process.open.delete(key);
  }

  #struck(process: ServedProcess, how: StrikeHow, moment: 'before' | 'between' | 'after', key: string): void {
    this.#world.history.push({ what: 'struck', kind: process.kind, instance: process.name, how, moment, key });
  }

  #note({ name }: ServedProcess, did: string): void {
    this.#world.history.push({ what: 'host', host: name, did });
  }
}
