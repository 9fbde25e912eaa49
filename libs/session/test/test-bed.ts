/**
 * A bed for tests of running sessions: a bus in memory, hosts on it, and a model, tools and hooks that do as the test
 * says, all on virtual time. What a test asserts stands in the journal, as lines.
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

/** See the top of the file. */
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

  /** The ports of a host; a test may put others in their places. */
  ports(other: Partial<HostPorts> = {}): HostPorts {
    const write = (level: keyof Log) => (fields: object, message: string) => {
      this.log.push({ level, message, fields });
    };
    const own = this.bus.hostPorts();
    return {
      ...own,
      journal: this.journal,
      hostLine: noticed(own.hostLine),
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

  /** A host that hears of no other, and takes all for its own: what two hosts must not be, and may come to be. */
  rival(options: HostOptions = {}, other: Partial<HostPorts> = {}): Promise<SessionHost> {
    return this.host(options, { hostLine: createMemoryBus(this.time.clock()).createHostLine(), ...other });
  }

  /** Sends a command and lets everything happen that needs no time to pass. @returns its id. */
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

  /** The records of a session; of a deleted one those that stand still. */
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

  /** The journal as lines, seams that deliver nothing left out. */
  async lines(session = 's1', from = 1): Promise<string[]> {
    return (await this.events(session, from)).map(journalLine).filter((line) => !/^loop_checkpoint \w+$/.test(line));
  }

  /** The stages that a command's receipts have told, in order: `accepted`, `accepted pending` for the next run, `rejected <code>`, `delivered <seam>`. */
  told(commandId: string): string[] {
    return this.receipts
      .filter((receipt) => receipt.command_id === commandId)
      .map(({ stage, code, seam, pending_for_next_run }) =>
        [stage, code ?? seam, pending_for_next_run && 'pending'].filter(Boolean).join(' '),
      );
  }

  /** Somebody deletes a session's journal. */
  forget(session: string): void {
    this.journal.gone.add(session);
  }

  /** Ends all hosts, and holds every journal that the test has written against its replay. */
  async end(): Promise<void> {
    for (const host of this.#hosts) host.abandon();
    for await (const ref of this.bus.journal.sessions('default')) {
      if (this.journal.gone.has(ref.sessionId)) continue;
      const records = (await this.bytes(ref.sessionId)).filter((bytes) => !tombstoneIn(bytes));
      // Of a deleted one nothing stands any more.
      if (records.length === 0) continue;
      for (const { point, payload } of await this.eventsOf('hook_call', ref.sessionId))
        expect([point, HOOK_PAYLOADS[point].safeParse(payload).error]).toEqual([point, undefined]);
      const replayed = await replayJournal(records, this.bus.blobs);
      expect(replayed).toEqual({ records: records.length, sessionId: ref.sessionId });
    }
    this.bus.close();
  }
}

/** How a command is sent. */
export interface SendOptions {
  readonly session?: string;
  /** Its id; empty for none. */
  readonly id?: string;
  /** Whether receipts are asked for. */
  readonly tell?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Where receipts are told. */
export const INBOX = '_INBOX.test';
/** Every call may run. */
export const ALLOW = { rules: [{ tool: '*', action: 'allow' }] };
/** Calls of `ask` wait for a person, every other may run. */
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

// Every journal of every test must replay, so no test has to ask for it.
afterEach(async () => {
  for (const bed of beds.splice(0)) await bed.end();
});

/** An empty bed. Its journals are replayed when the test has ended. */
export function testBed(): TestBed {
  return new TestBed();
}
