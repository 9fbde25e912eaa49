/**
 * A test bed for running sessions: a bus in memory, hosts, and a model, tools and hooks with behaviour of the test, all
 * on virtual time. Assertions are about the journal, as lines.
 */
import { createMemoryBus } from '@coxswain/adapter-memory';
import type { Log } from '@coxswain/ports';
import {
  decodeRecord,
  type EventOf,
  type EventType,
  HEADERS,
  HOOK_PAYLOADS,
  type JournalRecord,
  type JsonObject,
  type Receipt,
  type SessionEvent,
  type SessionRef,
  sessionRef,
  subjects,
  tombstoneIn,
} from '@coxswain/protocol';
import { afterEach, expect } from 'vitest';
import { journalLine } from '../../turn/test/journal-line.ts';
import {
  createSessionHost,
  type HostOptions,
  type HostPorts,
  readRecord,
  replayJournal,
  type SessionHost,
} from '../src/mod.ts';
import { FakeHooks } from './fake-hooks.ts';
import { FakeModels } from './fake-model.ts';
import { type FakeTool, FakeTools } from './fake-tools.ts';
import { FaultyJournal } from './faulty-journal.ts';
import { noticed, PLACID } from './noticed-line.ts';
import { VirtualTime } from './virtual-time.ts';

/** A line of the log of a host. */
export interface LogLine {
  readonly level: keyof Log;
  readonly message: string;
  readonly fields: object;
}

/** A test bed for running sessions. */
export class TestBed {
  readonly time = new VirtualTime();
  readonly bus = createMemoryBus(this.time.clock());
  readonly journal = new FaultyJournal(this.bus.journal);
  readonly models = new FakeModels(this.time.clock());
  readonly hooks = new FakeHooks();
  tools: Readonly<Record<string, FakeTool>> = { read: {} };
  readonly toolSource = new FakeTools(this.time.clock(), () => this.tools);
  readonly receipts: Receipt[] = [];
  readonly log: LogLine[] = [];
  readonly #hosts: SessionHost[] = [];
  #sent = 0;
  #ids = 0;

  constructor() {
    this.bus.subscribeReceipts(INBOX, (receipt) => this.receipts.push(receipt));
    beds.push(this);
  }

  /** The ports of a host; a test may replace them. */
  ports(other: Partial<HostPorts> = {}): HostPorts {
    const write = (level: keyof Log) => (fields: object, message: string) => {
      this.log.push({ level, message, fields });
    };
    const own = this.bus.hostPorts();
    return {
      ...own,
      journal: this.journal,
      hostChannel: noticed(own.hostChannel),
      clock: this.time.clock(),
      ids: { next: () => String(++this.#ids) },
      hooks: this.hooks,
      log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
      models: this.models,
      personas: { find: async () => null, names: async () => ['coder'] },
      tools: this.toolSource,
      defaultRoot: '/work',
      ...other,
    };
  }

  /** A host that has started. */
  async host(options: HostOptions = {}, other: Partial<HostPorts> = {}): Promise<SessionHost> {
    const host = createSessionHost(this.ports(other), { liveness: PLACID, ...options });
    this.#hosts.push(host);
    const started = host.start();
    await this.time.settle();
    await started;
    return host;
  }

  /** A host that hears no other one and claims all sessions: a conflict that must be safe. */
  rival(options: HostOptions = {}, other: Partial<HostPorts> = {}): Promise<SessionHost> {
    return this.host(options, { hostChannel: createMemoryBus(this.time.clock()).createHostChannel(), ...other });
  }

  /** Sends a command, and lets everything happen that needs no time. @returns its id. */
  async send(verb: string, body: JsonObject | string | Uint8Array = {}, options: SendOptions = {}): Promise<string> {
    const { session = 's1', id = `${verb}-${++this.#sent}`, tell = true } = options;
    const payload =
      body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body), 'utf8');
    this.bus.publish(subjects.command(sessionRef(session), verb), payload, {
      ...(id === '' ? {} : { [HEADERS.commandId]: id }),
      ...(tell ? { [HEADERS.receiptTo]: INBOX } : {}),
      ...(options.headers ?? {}),
    });
    await this.time.settle();
    return id;
  }

  /** Starts a session. */
  async start(settings: JsonObject = {}, options: SendOptions = {}): Promise<void> {
    await this.send('start', { prompt: 'hello', model: 'fake/model', permissions: ALLOW, ...settings }, options);
  }

  /** The records of a session; of a deleted one the remaining records. */
  async records(session = 's1'): Promise<JournalRecord[]> {
    const records: JournalRecord[] = [];
    for (const bytes of await this.bytes(session))
      if (!tombstoneIn(bytes)) records.push(await readRecord(bytes, this.bus.blobs));
    return records;
  }

  /** The stored bytes of a session's records. */
  async bytes(session = 's1'): Promise<Uint8Array[]> {
    const all: Uint8Array[] = [];
    for await (const record of this.bus.journal.read(refOf(session))) all.push(record.bytes);
    return all;
  }

  /** The events of a session. */
  async events(session = 's1', from = 1): Promise<SessionEvent[]> {
    return (await this.records(session)).filter((record) => record.n >= from).flatMap((record) => record.events);
  }

  /** The events of one type. */
  async eventsOf<T extends EventType>(type: T, session = 's1'): Promise<EventOf<T>[]> {
    return (await this.events(session)).filter((event): event is EventOf<T> => event.type === type);
  }

  /** The journal as lines, without seams that deliver nothing. */
  async lines(session = 's1', from = 1): Promise<string[]> {
    return (await this.events(session, from)).map(journalLine).filter((line) => !/^loop_checkpoint \w+$/.test(line));
  }

  /**
   * The stages in a command's receipts, in order: `accepted`, `accepted pending` for the next run, `rejected <code>`,
   * `delivered <seam>`.
   */
  told(commandId: string): string[] {
    return this.receipts
      .filter((receipt) => receipt.command_id === commandId)
      .map(({ stage, code, seam, pending_for_next_run }) =>
        [stage, code ?? seam, pending_for_next_run && 'pending'].filter(Boolean).join(' '),
      );
  }

  /** Deletes a session's journal from outside. */
  forget(session: string): void {
    this.journal.gone.add(session);
  }

  /** Stops all hosts, and replays every journal of the test. */
  async end(): Promise<void> {
    for (const host of this.#hosts) host.abandon();
    for await (const ref of this.bus.journal.sessions('default')) {
      if (this.journal.gone.has(ref.sessionId)) continue;
      const records = (await this.bytes(ref.sessionId)).filter((bytes) => !tombstoneIn(bytes));
      // A deleted journal has no records.
      if (records.length === 0) continue;
      for (const { point, payload } of await this.eventsOf('hook_call', ref.sessionId))
        if (payload) expect([point, HOOK_PAYLOADS[point].safeParse(payload).error]).toEqual([point, undefined]);
      const replayed = await replayJournal(records, this.bus.blobs);
      expect(replayed).toEqual({ records: records.length, sessionId: ref.sessionId });
    }
    this.bus.close();
  }
}

/** Options of a command. */
export interface SendOptions {
  readonly session?: string;
  /** Its id; empty for none. */
  readonly id?: string;
  /** Whether receipts are requested. */
  readonly tell?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The subject of receipts. */
export const INBOX = '_INBOX.test';
/** Every call is allowed. */
export const ALLOW = { rules: [{ tool: '*', action: 'allow' }] };
/** Calls of `ask` need an approval; every other call is allowed. */
export const ASKING = {
  rules: [
    { tool: 'ask', action: 'ask' },
    { tool: '*', action: 'allow' },
  ],
};

/** A session's reference. */
export function refOf(session = 's1'): SessionRef {
  return sessionRef(session);
}

/** A record without its blobs. */
export function recordOf(bytes: Uint8Array): JournalRecord {
  return decodeRecord(bytes);
}

const beds: TestBed[] = [];

// Every journal of every test must replay, without a request of the test.
afterEach(async () => {
  for (const bed of beds.splice(0)) await bed.end();
});

/** An empty bed. Its journals are replayed at the end of the test. */
export function testBed(): TestBed {
  return new TestBed();
}
