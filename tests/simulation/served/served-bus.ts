/**
 * The bus between hosts and the instances that serve tools, personas and hooks: queue groups, "no responders", and
 * messages that take their time or get lost. What reaches a process that stands still waits for it; what reaches a dead
 * one is lost. From one process to another, messages arrive in order.
 */
import type { AskingConnection } from '@coxswain/bus';
import type { Clock } from '@coxswain/ports';
import type { Msg, PublishOptions, Status, Subscription, SubscriptionOptions } from '@nats-io/nats-core';
import type { Random } from '../random.ts';
import type { ServedProcess } from './served-process.ts';

/** The condition of the bus. */
export interface Weather {
  /** The time that a message takes, milliseconds. */
  latency(random: Random): number;
  /** The probability that a message is lost. */
  lossRate(): number;
  /** What an instance receives of a message; null: nothing. */
  received(text: string): string | null;
}

/** Observes the requests and reports of instances. */
export interface Traffic {
  /** A request is on its way to this instance. */
  requested(instance: ServedProcess, key: string): void;
  /** An instance has reported. */
  reported(instance: ServedProcess, key: string, type: string): void;
}

interface Listener {
  readonly connection: Connection;
  readonly queue: string | undefined;
  readonly callback: NonNullable<SubscriptionOptions['callback']>;
}

const REPORT = /^\{"v":1,"key":"([^"]+)","instance":"[^"]+","type":"(\w+)"/;
const KEY = /"key":"([^"]+)"/;
const NO_RESPONDERS = { code: 503, description: 'No Responders', get: () => '' };

/** See the top of the file. */
export class ServedBus {
  traffic: Traffic | null = null;
  readonly #listeners = new Map<string, Listener[]>();
  readonly #weather: Weather;
  readonly #random: Random;
  #connections: Connection[] = [];
  #isOut = false;

  constructor(weather: Weather, random: Random) {
    this.#weather = weather;
    this.#random = random;
  }

  /** Connects a process. @param instance absent for a host. */
  connect(name: string, clock: Clock, instance: ServedProcess | null = null): AskingConnection {
    const connection = new Connection(this, name, clock, instance);
    this.#connections.push(connection);
    return connection as unknown as AskingConnection;
  }

  /** A process has died: the server closes its connection. */
  disconnect(name: string): void {
    this.#connections = this.#connections.filter((one) => one.name !== name);
    for (const [subject, listeners] of this.#listeners)
      this.#listeners.set(
        subject,
        listeners.filter(({ connection }) => connection.name !== name),
      );
  }

  /** The bus is out of reach, or back. */
  setOut(isOut: boolean): void {
    if (this.#isOut === isOut) return;
    this.#isOut = isOut;
    for (const one of this.#connections) one.change(isOut ? 'disconnect' : 'reconnect');
  }

  /** Adds a listener. @returns a function that removes it. */
  listen(subject: string, listener: Listener): () => void {
    const under = subject.replaceAll('.*', '');
    this.#listeners.set(under, [...(this.#listeners.get(under) ?? []), listener]);
    return () =>
      this.#listeners.set(
        under,
        (this.#listeners.get(under) ?? []).filter((one) => one !== listener),
      );
  }

  /** Sends a message. */
  publish(from: Connection, subject: string, text: string, reply: string | undefined): void {
    if (this.#isOut) return;
    const [, reported, type] = (from.instance && REPORT.exec(text)) ?? [];
    if (from.instance && reported && type) this.traffic?.reported(from.instance, reported, type);
    if (this.#random.chance(this.#weather.lossRate())) return;
    const takers = this.#takers(subject);
    for (const { connection, queue, callback } of takers) {
      const key = queue === undefined ? undefined : KEY.exec(text)?.[1];
      if (connection.instance && key) this.traffic?.requested(connection.instance, key);
      const received = connection.instance ? this.#weather.received(text) : text;
      if (received !== null) this.#arrives(from, connection, () => callback(null, messageOf(subject, received, reply)));
    }
    if (takers.length > 0 || reply === undefined) return;
    for (const { connection, callback } of this.#takers(reply))
      this.#arrives(from, connection, () =>
        callback(null, { ...messageOf(reply, ''), headers: NO_RESPONDERS } as never),
      );
  }

  /** Every listener without a queue group, and one of each group. */
  #takers(subject: string): Listener[] {
    const parts = subject.split('.');
    const under = (dropped: number) => this.#listeners.get(parts.slice(0, parts.length - dropped).join('.')) ?? [];
    const meant = subject.startsWith('_INBOX') ? [...under(1), ...under(2)] : under(0);
    const group = meant.filter(({ queue }) => queue !== undefined);
    const alone = meant.filter(({ queue }) => queue === undefined);
    return group.length === 0 ? alone : [...alone, this.#random.pick(group)];
  }

  #arrives(from: Connection, to: Connection, receive: () => void): void {
    const nowMs = to.clock.monotonicMs();
    const atMs = Math.max(nowMs + this.#weather.latency(this.#random), to.lastArrivalMs.get(from) ?? 0);
    to.lastArrivalMs.set(from, atMs);
    void to.clock.sleep(atMs - nowMs).then(receive);
  }
}

/** What served work uses of a connection. */
class Connection {
  readonly name: string;
  readonly clock: Clock;
  readonly instance: ServedProcess | null;
  readonly lastArrivalMs = new Map<Connection, number>();
  readonly #bus: ServedBus;
  readonly #changes: ('disconnect' | 'reconnect')[] = [];
  #changed: () => void = () => undefined;

  constructor(bus: ServedBus, name: string, clock: Clock, instance: ServedProcess | null) {
    this.#bus = bus;
    this.name = name;
    this.clock = clock;
    this.instance = instance;
  }

  publish(subject: string, data: string, { reply }: PublishOptions = {}): void {
    this.#bus.publish(this, subject, data, reply);
  }

  subscribe(subject: string, { queue, callback }: SubscriptionOptions): Subscription {
    const unsubscribe = this.#bus.listen(subject, { connection: this, queue, callback: callback as never });
    return { unsubscribe, drain: async () => unsubscribe(), isClosed: () => false } as unknown as Subscription;
  }

  flush(): Promise<void> {
    return this.clock.sleep(1);
  }

  isClosed(): boolean {
    return false;
  }

  async *status(): AsyncIterable<Pick<Status, 'type'>> {
    for (;;) {
      for (let type = this.#changes.shift(); type !== undefined; type = this.#changes.shift()) yield { type };
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  /** The process learns of it when it runs. */
  change(type: 'disconnect' | 'reconnect'): void {
    void this.clock.sleep(0).then(() => {
      this.#changes.push(type);
      this.#changed();
    });
  }
}

function messageOf(subject: string, text: string, reply?: string): Msg {
  return { subject, data: Buffer.from(text), reply, json: () => JSON.parse(text) } as unknown as Msg;
}
