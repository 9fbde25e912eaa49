/**
 * NATS in memory, on the timers of the test: queue groups, "no responders", and processes that freeze, die and lose their
 * connection.
 */
import { headers, type Msg, type MsgHdrs, type NatsConnection, type Subscription } from '@nats-io/nats-core';

interface Listener {
  readonly pattern: readonly string[];
  readonly queue: string | undefined;
  readonly process: FakeProcess;
  readonly callback: (error: Error | null, message: Msg) => void;
}

/** A process on the bus. A frozen one handles its messages when it resumes. A killed one loses them. */
export class FakeProcess {
  readonly nc: NatsConnection;
  readonly #bus: FakeBus;
  #waiting: (() => void)[] = [];
  #isFrozen = false;
  #isDead = false;
  #isConnected = true;
  #changed: (type: 'disconnect' | 'reconnect') => void = () => undefined;

  constructor(bus: FakeBus) {
    this.#bus = bus;
    this.nc = bus.connect(this);
  }

  /** SIGSTOP: the server does not notice. */
  freeze(): void {
    this.#isFrozen = true;
  }

  /** SIGCONT. It reads the messages in its socket one by one, and other code runs between them. */
  wake(): void {
    this.#isFrozen = false;
    this.#handleWaiting();
  }

  /** SIGKILL: the server notices at once. */
  kill(): void {
    this.#isDead = true;
    this.#waiting = [];
    this.#bus.forget(this);
  }

  /** Whether a server knows its subscriptions. */
  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** Its server dies: messages from and to it are lost until {@link reconnect}, and its subscriptions are unknown. */
  disconnect(): void {
    this.#isConnected = false;
    this.#changed('disconnect');
  }

  /** It has found a server again. */
  reconnect(): void {
    this.#isConnected = true;
    this.#changed('reconnect');
  }

  /** The changes of its connection, in the form of the library. */
  async *status() {
    for (;;)
      yield await new Promise<{ type: string }>((resolve) => {
        this.#changed = (type) => resolve({ type });
      });
  }

  /** Sends or receives a message. */
  take(one: () => void): void {
    if (this.#isConnected) this.#run(one);
  }

  /** Runs something on a timer of this process: when it resumes if it is frozen then, and never after its death. */
  after(ms: number, one: () => void): void {
    setTimeout(() => this.#run(one), ms);
  }

  /** Starts something whose intervals belong to this process: none fires while it is frozen, and after its death. */
  async owning<T>(start: () => Promise<T>): Promise<T> {
    const { setInterval } = globalThis;
    globalThis.setInterval = ((tick: () => void, ms: number) =>
      setInterval(() => {
        if (!this.#isFrozen && !this.#isDead) tick();
      }, ms)) as typeof setInterval;
    try {
      return await start();
    } finally {
      globalThis.setInterval = setInterval;
    }
  }

  #run(one: () => void): void {
    if (this.#isDead) return;
    if (this.#isFrozen || this.#waiting.length > 0) this.#waiting.push(one);
    else one();
  }

  #handleWaiting(): void {
    const [next] = this.#waiting;
    if (this.#isFrozen || !next) return;
    next();
    setTimeout(() => {
      this.#waiting.shift();
      this.#handleWaiting();
    }, 0);
  }
}

/** The server. */
export class FakeBus {
  #listeners: Listener[] = [];
  /** Messages on subjects for which this holds are lost. */
  loses: (subject: string) => boolean = () => false;
  /** The time of a message to the server, and from the server to a process, milliseconds. Heartbeats need none. */
  hopMs = 0;
  /** The members of a queue group receive in turn, as on average on a server. The place of the next receiver. */
  next = 0;
  /** Every message without the heartbeats, in order of arrival at the server: its subject and its body. */
  readonly sent: { readonly subject: string; readonly body: Record<string, unknown> }[] = [];

  forget(process: FakeProcess): void {
    this.#listeners = this.#listeners.filter((one) => one.process !== process);
  }

  connect(process: FakeProcess): NatsConnection {
    const nc = {
      subscribe: (subject: string, { queue, callback }: { queue?: string; callback: Listener['callback'] }) => {
        const listener = { pattern: subject.split('.'), queue, process, callback };
        this.#listeners.push(listener);
        const end = () => {
          this.#listeners = this.#listeners.filter((one) => one !== listener);
        };
        return { unsubscribe: end, drain: async () => end(), isClosed: () => false } as unknown as Subscription;
      },
      publish: (subject: string, data: string, { reply }: { reply?: string } = {}) => {
        const hopMs = isHeartbeat(subject) ? 0 : this.hopMs;
        process.take(() => travel(hopMs, () => this.#deliver(process, subject, data, reply)));
      },
      status: () => process.status(),
      isClosed: () => false,
      flush: () => new Promise<void>((resolve) => queueMicrotask(() => process.take(resolve))),
    };
    return nc as unknown as NatsConnection;
  }

  #deliver(from: FakeProcess, subject: string, data: string, reply: string | undefined): void {
    if (!isHeartbeat(subject)) this.sent.push({ subject, body: JSON.parse(data) as Record<string, unknown> });
    if (this.loses(subject)) return;
    const tokens = subject.split('.');
    const matching = this.#listeners.filter(({ pattern, process }) => process.isConnected && matches(pattern, tokens));
    const queues = [...new Set(matching.map(({ queue }) => queue))];
    for (const queue of queues) {
      const group = matching.filter((one) => one.queue === queue);
      const receivers = queue === undefined ? group : [group[this.next++ % group.length] as Listener];
      for (const one of receivers) this.#receive(one, messageOf(subject, data, reply));
    }
    if (matching.length > 0 || reply === undefined) return;
    const [back] = this.#listeners.filter(
      ({ process, pattern }) => process === from && matches(pattern, reply.split('.')),
    );
    if (back) this.#receive(back, messageOf(reply, '', undefined, headers(503, 'No Responders')));
  }

  #receive({ process, callback }: Listener, message: Msg): void {
    const receive = () => process.take(() => callback(null, message));
    if (this.hopMs > 0 && !isHeartbeat(message.subject)) setTimeout(receive, this.hopMs);
    else receive();
  }
}

function travel(ms: number, arrive: () => void): void {
  if (ms > 0) setTimeout(arrive, ms);
  else queueMicrotask(arrive);
}

function isHeartbeat(subject: string): boolean {
  return subject.startsWith('$KV.');
}

function matches(pattern: readonly string[], subject: readonly string[]): boolean {
  return (
    pattern.length === subject.length && pattern.every((token, place) => token === '*' || token === subject[place])
  );
}

function messageOf(subject: string, data: string, reply?: string, head?: MsgHdrs): Msg {
  const bytes = new TextEncoder().encode(data);
  const message = { subject, data: bytes, reply, headers: head, json: () => JSON.parse(data), string: () => data };
  return message as unknown as Msg;
}
