/** A client on the bus itself, and what can be done there alone: serve tools and personas, and what workers report. */
import { type JsonObject, readId, SessionId, type SessionRef, sessionRef, TenantId } from '@coxswain/protocol';
import { type BusInfo, busInfo, storedCommands } from './bus-info.ts';
import type { BusConnection, BusTransport } from './bus-transport.ts';
import type { CallGuard } from './call-guard.ts';
import { Client } from './client.ts';
import { refuseOthers, refuseUnknown, type SentCommand, sentCommand } from './command-form.ts';
import type { PersonaDefinition } from './define-persona.ts';
import type { InputSchema, Tool } from './define-tool.ts';
import { GuardedTransport } from './guarded-transport.ts';
import { RecordDecoder } from './large-fields.ts';
import type { ListPlace, NewestSessions } from './newest-sessions.ts';
import { checkOptions, checkRecordNumber } from './option-checks.ts';
import type { SendOptions } from './outgoing-command.ts';
import { type JournalReading, readJournal, type StoredJournalRecord } from './read-journal.ts';
import { type CallEnd, callEndToWire, sendCallOutcome, type TakenUpCall } from './send-call-outcome.ts';
import { type JobReport, sendJobReport } from './send-job-report.ts';
import {
  SERVE_PERSONA_OPTIONS,
  type ServedPersonaInstance,
  type ServePersonaOptions,
  servePersonaOn,
} from './serve-persona.ts';
import { SERVE_TOOL_OPTIONS, type ServedTool, type ServeToolOptions, serveToolOn } from './serve-tool.ts';
import { type ReadFrom, Session } from './session-handle.ts';
import type { WireListedSession } from './session-listing.ts';
import { ClientWire } from './wire-access.ts';

/** A session on the bus. */
export class BusSession extends Session {
  readonly #bus: BusConnection;
  readonly #guard: CallGuard;

  /** Made by {@link BusClient}. @internal */
  constructor(transport: BusTransport, ref: SessionRef) {
    super(transport, ref);
    this.#bus = transport.bus;
    this.#guard = transport.guard;
  }

  /** The records that are stored now, each with its bytes as stored. Otherwise as {@link Session.journal}. */
  override journal(
    options: Pick<ReadFrom, 'from'> & JournalReading = {},
  ): AsyncGenerator<StoredJournalRecord, void, undefined> {
    checkOptions(options);
    const { from = 1, after, atOnce, ...others } = options;
    refuseOthers(others);
    checkRecordNumber('from', from);
    return this.existing(this.#guard.read(() => readJournal(this.#bus, this.ref, from, { after, atOnce })));
  }

  /** How many of its commands are stored and not processed by a host yet. @throws as all calls of a client. */
  storedCommands(): Promise<number> {
    return this.#guard.call(() => storedCommands(this.#bus.nc, this.ref));
  }

  /** Brings the outcome of a call of a `longRunning` tool. The first one counts. */
  async endCall(call: TakenUpCall, end: CallEnd, options: SendOptions = {}): Promise<SentCommand> {
    checkOptions(options);
    const send = async () => sendCallOutcome(this.#bus, this.ref, call, callEndToWire(end), options);
    return this.#guard.call(send, options.signal).then(sentCommand);
  }

  /**
   * Reports the progress of a job that a hook of the session started, for the process that runs it. Its end reaches the model, also where
   * the job is quicker than the record of its receipt: then the report is decided when the hooks have answered.
   */
  async reportJob(report: JobReport, options: SendOptions = {}): Promise<SentCommand> {
    checkOptions(options);
    const send = () => sendJobReport(this.#bus, this.ref, report, options);
    return this.#guard.call(send, options.signal).then(sentCommand);
  }
}

/** The sessions of a tenant on the bus, in the form of the wire. */
export class BusWire extends ClientWire {
  readonly #bus: BusTransport;

  /** Made by {@link BusClient}. @internal */
  constructor(transport: BusTransport) {
    super(new GuardedTransport(transport));
    this.#bus = transport;
  }

  /** Every session of the tenant, deleted ones too, the most recently changed last. Read at once, for tools. */
  listings(): Promise<WireListedSession[]> {
    return this.#bus.guard.call(() => this.#bus.listings());
  }

  /**
   * The sessions of the tenant, the most recently changed first: of many, the first few cost little.
   * @param after the list starts behind this place; null: at the newest session.
   */
  async newestSessions(after: ListPlace | null = null): Promise<NewestSessions> {
    const { guard } = this.#bus;
    const { sessions, ...counted } = await guard.call(() => this.#bus.newestSessions(after));
    return { ...counted, sessions: guard.read(() => sessions) };
  }

  /** The place of a session in that list; null if it is not in the index of sessions. @throws InvalidIdError. */
  placeInList(sessionId: string): Promise<ListPlace | null> {
    const ref = sessionRef(readId(SessionId, 'sessionId', sessionId), this.#bus.tenant);
    return this.#bus.guard.call(() => this.#bus.placeInList(ref));
  }
}

/** A client with a connection to the bus. */
export class BusClient extends Client<BusSession> {
  override readonly wire: BusWire;
  readonly #transport: BusTransport;

  /** Made by `connect`. @internal */
  constructor(transport: BusTransport) {
    super(transport, (ref) => new BusSession(transport, ref));
    this.wire = new BusWire(transport);
    this.#transport = transport;
  }

  /**
   * The same connection for another tenant's sessions, where the bus lets it: closing either closes both.
   * @throws InvalidIdError where the name is none.
   */
  forTenant(tenant: string): BusClient {
    return new BusClient(this.#transport.forTenant(readId(TenantId, 'tenant', tenant)));
  }

  /** The bytes of a large field by their hash, or null: what replaying an exported journal needs. */
  blob(sha256: string): Promise<Uint8Array | null> {
    const { bus, guard } = this.#transport;
    return guard.call(() => new RecordDecoder(bus, this.tenant).blob(sha256));
  }

  /**
   * Announces a tool and serves it on this connection until it is stopped. Any number of processes may serve the same.
   * @throws InvalidOptionError, ToolDefinitionError, BusNotPreparedError.
   */
  serveTool<const Schema extends InputSchema | JsonObject>(
    tool: Tool<Schema>,
    options: ServeToolOptions = {},
  ): Promise<ServedTool> {
    const { bus, guard } = this.#transport;
    return guard.call(async () => {
      refuseUnknown(options, SERVE_TOOL_OPTIONS);
      return serveToolOn(bus, this.tenant, tool as unknown as Tool, options);
    });
  }

  /**
   * Announces a persona and serves its steps and tools on this connection until it is stopped. Any number of processes may
   * serve the same.
   * @throws InvalidOptionError, PersonaNotServableError, PersonaVersionTakenError, ToolDefinitionError, BusNotPreparedError.
   */
  servePersona(definition: PersonaDefinition, options: ServePersonaOptions): Promise<ServedPersonaInstance> {
    const { bus, guard } = this.#transport;
    return guard.call(async () => {
      refuseUnknown(options, SERVE_PERSONA_OPTIONS);
      return servePersonaOn(bus, this.tenant, definition, options);
    });
  }

  /** The ids of all sessions of the tenant, in no order. Cheaper than {@link sessions}. */
  sessionIds(): Promise<string[]> {
    return this.#transport.guard.call(() => this.#transport.sessionIds());
  }

  /** What the bus is: for checks and messages. */
  busInfo(): Promise<BusInfo> {
    return this.#transport.guard.call(() => busInfo(this.#transport.bus.nc));
  }
}
