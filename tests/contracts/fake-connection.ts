/** A connection to a bus in memory, under the test's timers: queue groups, no responders, and processes that stand still. */
import type { HookRequest } from '@coxswain/ports';
import { type HookRegistration, SessionId, sessionRef, TenantId } from '@coxswain/protocol';
import { headers, type Msg, type MsgHdrs, type NatsConnection, type Subscription } from '@nats-io/nats-core';

/** What a host asks of the hook `registration`, for the session `s1`. */
export function hookRequest(registration: HookRegistration): HookRequest {
  return {
    ref: sessionRef(SessionId.parse('s1'), TenantId.parse('default')),
    effectId: '3-0',
    registration,
    payload: {},
    transcript: () => [],
    onFeedback: () => undefined,
  };
}

interface Listener {
  readonly pattern: readonly string[];
  readonly queue: string | undefined;
  readonly process: FakeProcess;
  readonly callback: (error: Error | null, message: Msg) => void;
}

/** One process on the bus. What reaches it while it stands still waits for it; what reaches it when it is dead is lost. */
export class FakeProcess {
  readonly nc: NatsConnection;
  readonly #bus: FakeBus;
  #waiting: (() => void)[] | null = null;
  #isDead = false;
  #isConnected = true;
  #changed: (type: 'disconnect' | 'reconnect') => void = () => undefined;

  constructor(bus: FakeBus) {
    this.#bus = bus;
    this.nc = bus.connect(this);
  }

  get isStill(): boolean {
    return this.#waiting !== null;
  }

  /** SIGSTOP: the server does not notice. */
  freeze(): void {
    this.#waiting = [];
  }

  /** SIGCONT. */
  wake(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = null;
    for (const one of waiting) one();
  }

  /** SIGKILL: the server notices at once. */
  kill(): void {
    this.#isDead = true;
    this.#waiting = null;
    this.#bus.forget(this);
  }

  /** Whether a server knows what it listens to. */
  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** Its server dies: what it says or is sent is lost until {@link reconnect}, and no other server knows that it listens. */
  disconnect(): void {
    this.#isConnected = false;
    this.#changed('disconnect');
  }

  /** It has found a server again. */
  reconnect(): void {
    this.#isConnected = true;
    this.#changed('reconnect');
  }

  /** The changes of its connection, as the library tells them. */
  async *status() {
    for (;;)
      yield await new Promise<{ type: string }>((resolve) => {
        this.#changed = (type) => resolve({ type });
      });
  }

  /** Something that it hears, or says. */
  take(one: () => void): void {
    if (this.#isDead || !this.#isConnected) return;
    if (this.#waiting) this.#waiting.push(one);
    else one();
  }
}

/** The server. */
export class FakeBus {
  #listeners: Listener[] = [];
  /** Messages on subjects for which this holds are lost. */
  loses: (subject: string) => boolean = () => false;
  /** Every message with a reply or without, in order: its subject and its body. */
  readonly sent: { readonly subject: string; readonly body: Record<string, unknown> }[] = [];
  #next = 0;

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
        // The heartbeats of a process that stands still are not sent later: its timers have not fired.
        if (!process.isStill || !subject.startsWith('$KV.'))
          process.take(() => void queueMicrotask(() => this.#deliver(process, subject, data, reply)));
      },
      status: () => process.status(),
      isClosed: () => false,
      flush: async () => undefined,
    };
    return nc as unknown as NatsConnection;
  }

  #deliver(from: FakeProcess, subject: string, data: string, reply: string | undefined): void {
    this.sent.push({ subject, body: JSON.parse(data) as Record<string, unknown> });
    if (this.loses(subject)) return;
    const meant = this.#listeners.filter(
      ({ pattern, process }) => process.isConnected && matches(pattern, subject.split('.')),
    );
    const queues = [...new Set(meant.map(({ queue }) => queue))];
    for (const queue of queues) {
      const group = meant.filter((one) => one.queue === queue);
      // The group's messages go round, as a server's do on average.
      const takers = queue === undefined ? group : [group[this.#next++ % group.length] as Listener];
      for (const { process, callback } of takers) {
        const respond = (answer: string) => process.nc.publish(reply as string, answer);
        process.take(() => callback(null, { ...messageOf(subject, data, reply), respond } as Msg));
      }
    }
    if (meant.length > 0 || reply === undefined) return;
    const head = headers(503, 'No Responders');
    const [back] = this.#listeners.filter(
      ({ process, pattern }) => process === from && matches(pattern, reply.split('.')),
    );
    back?.process.take(() => back.callback(null, messageOf(reply, '', undefined, head)));
  }
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
