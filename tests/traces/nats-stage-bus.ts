/**
 * A real bus for a stage. Answers of a server take time of which the stage's clock knows nothing: so the clock stands still
 * until every request is answered and every command that was published has been rung, and the same scenario can be held
 * against the one in memory byte by byte. Only when a timer is due is decided by that clock, and not by the server.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  createNatsActiveSessions,
  createNatsBlobs,
  createNatsHostChannel,
  createNatsInbox,
  createNatsJournal,
  createNatsPublisher,
  createNatsSnapshots,
  createNatsTimers,
} from '@coxswain/adapter-nats';
import type {
  Clock,
  CommandInbox,
  CommandSender,
  HostChannel,
  Journal,
  Log,
  StoredRecord,
  Timers,
} from '@coxswain/ports';
import { HEADERS, type SessionRef, subjects } from '@coxswain/protocol';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { createMemoryTimers } from '../../libs/adapters/memory/src/memory-timers.ts';
import type { StageBus } from './stage-bus.ts';

const QUIET: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
/** The stage is quiet after this number of round trips to the server with no request open. */
const QUIET_ROUND_TRIPS = 4;
const DRAINED_WITHIN_MS = 60_000;

/** See the top of the file. The streams are there, and empty. */
export class NatsStageBus implements StageBus {
  readonly journal: Journal;
  readonly snapshots;
  readonly blobs;
  readonly active;
  readonly publisher;
  readonly timers: Timers;
  readonly sender: CommandSender = {
    send: async (ref, verb, payload, { commandId } = {}) => {
      const head = {
        [HEADERS.commandId]: commandId ?? '',
        'Nats-Msg-Id': subjects.commandMessageId(ref, commandId ?? ''),
      };
      await this.#store(subjects.command(ref, verb), payload, commandId === undefined ? {} : head);
      return { seq: 0, commandId: commandId ?? '' };
    },
  };
  readonly #nc: NatsConnection;
  readonly #beganMs: number;
  readonly #due;
  /** Requests that have no answer yet. */
  #underWay = 0;
  /** Positions of commands that no host was rung for. */
  readonly #unheard = new Set<number>();
  readonly #heard = new Set<number>();
  readonly #open = new Set<CommandInbox>();
  #problem: Error | null = null;

  constructor(nc: NatsConnection, clock: Clock) {
    this.#nc = nc;
    this.#beganMs = clock.nowMs();
    const journal = createNatsJournal(nc);
    const follow = <T>(promise: Promise<T>) => this.#follow(promise);
    this.journal = { ...followed(journal, follow), read: (ref, fence) => this.#each(journal.read(ref, fence)) };
    this.snapshots = followed(createNatsSnapshots(nc), follow);
    this.blobs = followed(createNatsBlobs(nc), follow);
    this.active = followed(createNatsActiveSessions(nc), follow);
    this.publisher = createNatsPublisher(nc, QUIET);
    const kept = followed(createNatsTimers(nc), follow);
    this.#due = createMemoryTimers(
      clock,
      (ref, due) => this.#fire(ref, due),
      () => undefined,
    );
    this.timers = {
      schedule: async (ref, timerId, atMs, payload) => {
        // The stage's time is ahead of the server's by years: the server keeps the schedule, and never fires it.
        await kept.schedule(ref, timerId, atMs, payload);
        await this.#due.schedule(ref, timerId, atMs, Buffer.from(JSON.stringify([timerId, text(payload)])));
      },
    };
  }

  publish(subject: string, payload: Uint8Array, head: Readonly<Record<string, string>> = {}): void {
    void this.#store(subject, payload, head);
  }

  createHostChannel(): HostChannel {
    const line = createNatsHostChannel(this.#nc, QUIET);
    // Once the server has answered a ping, whoever listens on this connection has what was said before.
    const said = () => void this.#follow(this.#nc.flush());
    return {
      ...line,
      open: (host, handlers) => this.#follow(line.open(host, handlers)),
      heartbeat: (beat) => {
        line.heartbeat(beat);
        said();
      },
      notify: (host, ref, seq) => {
        line.notify(host, ref, seq);
        said();
      },
      announceSessionLeft: (ref) => {
        line.announceSessionLeft(ref);
        said();
      },
    };
  }

  async createInbox(): Promise<CommandInbox> {
    const inbox = await createNatsInbox(this.#nc, QUIET);
    return {
      // By the stage's clock, as all that a journal says of time.
      incarnation: { ...inbox.incarnation, created: String(this.#beganMs) },
      read: (ref, afterSeq, untilSeq) => this.#follow(inbox.read(ref, afterSeq, untilSeq)),
      open: (handlers, partitions) => {
        this.#open.add(inbox);
        return this.#follow(
          inbox.open(
            {
              notify: (notification) => {
                this.#hear(notification.seq);
                handlers.notify(notification);
              },
              unroutable: (command) => {
                this.#hear(command.seq);
                handlers.unroutable(command);
              },
            },
            partitions,
          ),
        );
      },
      close: () => {
        this.#open.delete(inbox);
        return this.#follow(inbox.close());
      },
    };
  }

  async drained(): Promise<void> {
    const giveUpAtMs = performance.now() + DRAINED_WITHIN_MS;
    for (let quiet = 0; quiet < QUIET_ROUND_TRIPS; quiet++) {
      // Turns of the event loop alone are not enough on a busy machine: a message may still be in a socket. The server
      // answers a ping after everything that it had sent before on this connection.
      await this.#nc.flush();
      if (this.#problem) throw this.#problem;
      if (this.#underWay === 0 && (this.#open.size === 0 || this.#unheard.size === 0)) continue;
      if (performance.now() > giveUpAtMs)
        throw new Error(`${this.#underWay} requests and the commands ${[...this.#unheard]} do not end`);
      quiet = -1;
    }
  }

  close(): void {
    this.#due.close();
  }

  #fire(ref: SessionRef, due: Uint8Array): void {
    const [timerId, payload] = JSON.parse(text(due)) as [string, string];
    void this.#store(subjects.timerDue(ref, timerId), Buffer.from(payload), {}, true);
  }

  /** Contract: does not reject. */
  async #store(subject: string, payload: Uint8Array, head: Readonly<Record<string, string>>, isTimer = false) {
    const set = headers();
    for (const [name, value] of Object.entries(head)) set.set(name, value);
    this.#underWay++;
    try {
      const before = isTimer ? await this.#lastCommand() : 0;
      const answer = await this.#nc.request(subject, payload, { headers: set, timeout: 10_000 });
      const { seq, error } = answer.json<{ seq?: number; error?: { description: string } }>();
      if (error) throw new Error(`${subject} is not stored: ${error.description}`);
      // What is due is taken over by the stream of commands, where it has another place.
      if (seq !== undefined) this.#expect(isTimer ? await this.#commandAfter(before) : seq);
    } catch (error) {
      this.#problem ??= error as Error;
    } finally {
      this.#underWay--;
    }
  }

  async #commandAfter(before: number): Promise<number> {
    for (;;) {
      const last = await this.#lastCommand();
      if (last > before) return last;
      await sleep(1);
    }
  }

  async #lastCommand(): Promise<number> {
    const answer = await this.#nc.request('$JS.API.STREAM.INFO.COX_COMMANDS', '', { timeout: 10_000 });
    return answer.json<{ state: { last_seq: number } }>().state.last_seq;
  }

  #expect(seq: number): void {
    if (!this.#heard.has(seq)) this.#unheard.add(seq);
  }

  #hear(seq: number): void {
    this.#heard.add(seq);
    this.#unheard.delete(seq);
  }

  async #follow<T>(promise: Promise<T>): Promise<T> {
    this.#underWay++;
    try {
      return await promise;
    } finally {
      this.#underWay--;
    }
  }

  /** Whoever reads may wait between two records. */
  async *#each(records: AsyncIterable<StoredRecord>): AsyncGenerator<StoredRecord> {
    const iterator = records[Symbol.asyncIterator]();
    try {
      for (;;) {
        const { done, value } = await this.#follow(iterator.next());
        if (done) return;
        yield value;
      }
    } finally {
      await iterator.return?.();
    }
  }
}

/** The same port; each of its promises is followed. */
function followed<Port extends object>(port: Port, follow: <T>(promise: Promise<T>) => Promise<T>): Port {
  return new Proxy(port, {
    get(target, name, receiver) {
      const member: unknown = Reflect.get(target, name, receiver);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        const result: unknown = member.apply(target, args);
        return result instanceof Promise ? follow(result) : result;
      };
    },
  });
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8');
}
