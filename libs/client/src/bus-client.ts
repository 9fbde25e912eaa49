/** A client with a NATS connection. It can also serve tools and personas, and report outcomes of calls and jobs. */
import type { AcceptedCall } from '@coxswain/bus';
import { type JsonObject, readId, SessionId, type SessionRef, sessionRef, TenantId } from '@coxswain/protocol';
import { type BusInfo, busInfo, storedCommands } from './bus-info.ts';
import type { BusTransport } from './bus-transport.ts';
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
import type { ApprovalsQuery, WireApprovalsPage } from './pending-approvals.ts';
import { type JournalReading, readJournal, type StoredJournalRecord } from './read-journal.ts';
import { type CallOutcome, callOutcomeToWire, sendCallOutcome } from './send-call-outcome.ts';
import type { CommandBus } from './send-command.ts';
import { type JobReport, sendJobReport } from './send-job-report.ts';
import {
  SERVE_PERSONA_OPTIONS,
  type ServedPersonaInstance,
  type ServePersonaOptions,
  servePersonaOn,
} from './serve-persona.ts';
import { SERVE_TOOL_OPTIONS, type ServedTool, type ServeToolOptions, serveToolOn } from './serve-tool.ts';
import { type ReadFrom, Session } from './session-handle.ts';
import { ClientWire } from './wire-access.ts';

/** A session on the bus. */
export class BusSession extends Session {
  readonly #bus: CommandBus;
  readonly #guard: CallGuard;

  /** Created by {@link BusClient}. @internal */
  constructor(transport: BusTransport, ref: SessionRef) {
    super(transport, ref);
    this.#bus = transport.bus;
    this.#guard = transport.guard;
  }

  /** The stored records, each with its bytes as stored. Otherwise as {@link Session.journal}. */
  override journal(
    options: Pick<ReadFrom, 'from'> & JournalReading = {},
  ): AsyncGenerator<StoredJournalRecord, void, undefined> {
    checkOptions(options);
    const { from = 1, after, atOnce, ...others } = options;
    refuseOthers(others);
    checkRecordNumber('from', from);
    return this.existing(this.#guard.read(() => readJournal(this.#bus.nc, this.ref, from, { after, atOnce })));
  }

  /** The number of stored commands of the session that no host has processed yet. @throws CoxswainError. */
  storedCommands(): Promise<number> {
    return this.#guard.call(() => storedCommands(this.#bus.nc, this.ref));
  }

  /** Sends the outcome of a call of a `longRunning` tool. The first outcome counts. */
  async endCall(call: AcceptedCall, end: CallOutcome, options: SendOptions = {}): Promise<SentCommand> {
    checkOptions(options);
    const send = async () => sendCallOutcome(this.#bus, this.ref, call, callOutcomeToWire(end), options);
    return this.#guard.call(send, options.signal).then(sentCommand);
  }

  /**
   * Reports the progress of a job that a hook of the session started, for the process that runs the job. The end of a
   * job is delivered to the model, even if the report arrives before the record of the job. Such a report is decided
   * when the hooks have answered.
   */
  async reportJob(report: JobReport, options: SendOptions = {}): Promise<SentCommand> {
    checkOptions(options);
    const send = () => sendJobReport(this.#bus, this.ref, report, options);
    return this.#guard.call(send, options.signal).then(sentCommand);
  }
}

/** The sessions of a tenant on NATS, as wire documents. */
export class BusWire extends ClientWire {
  readonly #bus: BusTransport;

  /** Created by {@link BusClient}. @internal */
  constructor(transport: BusTransport) {
    super(new GuardedTransport(transport));
    this.#bus = transport;
  }

  /**
   * The sessions of the tenant, the most recently changed first. Reading the first few of a long list is cheap.
   * @param after The list starts after this position; null: at the newest session.
   */
  async newestSessions(after: ListPlace | null = null): Promise<NewestSessions> {
    const { guard } = this.#bus;
    const { sessions, ...counted } = await guard.call(() => this.#bus.newestSessions(after));
    return { ...counted, sessions: guard.read(() => sessions) };
  }

  /** A page of the pending approvals of all sessions, the longest pending first. Each page reads all sessions. */
  pageOfApprovals(query: ApprovalsQuery): Promise<WireApprovalsPage> {
    return this.#bus.guard.call(() => this.#bus.pageOfApprovals(query));
  }

  /** The position of a session in that list; null if the index does not contain it. @throws InvalidIdError. */
  placeInList(sessionId: string): Promise<ListPlace | null> {
    const ref = sessionRef(readId(SessionId, 'sessionId', sessionId), this.#bus.tenant);
    return this.#bus.guard.call(() => this.#bus.placeInList(ref));
  }
}

/** A client with a connection to NATS. */
export class BusClient extends Client<BusSession> {
  override readonly wire: BusWire;
  readonly #transport: BusTransport;

  /** Created by `connect`. @internal */
  constructor(transport: BusTransport) {
    super(transport, (ref) => new BusSession(transport, ref));
    this.wire = new BusWire(transport);
    this.#transport = transport;
  }

  /**
   * A client for another tenant on the same connection, if the permissions allow it. Closing either client closes both.
   * @throws InvalidIdError for an invalid name.
   */
  forTenant(tenant: string): BusClient {
    return new BusClient(this.#transport.forTenant(readId(TenantId, 'tenant', tenant)));
  }

  /** The bytes of a large field by their SHA-256 hash, or null. Replaying an exported journal needs them. */
  blob(sha256: string): Promise<Uint8Array | null> {
    const { bus, guard } = this.#transport;
    return guard.call(() => new RecordDecoder(bus.nc, this.tenant).blob(sha256));
  }

  /**
   * Announces a tool and serves it on this connection until it is stopped. Several processes can serve the same tool.
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
   * Announces a persona and serves its steps and tools on this connection until it is stopped. Several processes can
   * serve the same persona.
   * @throws InvalidOptionError, PersonaNotServableError, PersonaVersionTakenError, ToolDefinitionError,
   *   BusNotPreparedError.
   */
  servePersona(definition: PersonaDefinition, options: ServePersonaOptions): Promise<ServedPersonaInstance> {
    const { bus, guard } = this.#transport;
    return guard.call(async () => {
      refuseUnknown(options, SERVE_PERSONA_OPTIONS);
      return servePersonaOn(bus, this.tenant, definition, options);
    });
  }

  /** The ids of all sessions of the tenant, unordered. Cheaper than {@link sessions}. */
  sessionIds(): Promise<string[]> {
    return this.#transport.guard.call(() => this.#transport.sessionIds());
  }

  /** The NATS server and its streams, for diagnostics. */
  busInfo(): Promise<BusInfo> {
    return this.#transport.guard.call(() => busInfo(this.#transport.bus.nc));
  }
}
