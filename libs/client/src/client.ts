/** The client: one connection to a bus, and the sessions of one tenant on it. */
import {
  type JsonObject,
  type PersonaInput,
  readId,
  type SessionRef,
  type SessionStatus,
  sessionRef,
  TenantId,
  topState,
} from '@coxswain/protocol';
import { type JetStreamClient, jetstream } from '@nats-io/jetstream';
import { connect as connectNats, type NatsConnection } from '@nats-io/transport-node';
import { type BusInfo, busInfo } from './bus-info.ts';
import { closedForGood } from './closed-for-good.ts';
import { type ConnectOptions, natsOptions } from './connection-options.ts';
import type { ArgumentSchema, ServedToolDefinition } from './define-tool.ts';
import { newSessionId } from './fresh-ids.ts';
import { RecordDecoder } from './large-fields.ts';
import { newestRecords, sessionIds } from './read-journal.ts';
import { type BodyInput, type SendOptions, type SentCommand, sendCommand } from './send-command.ts';
import { type ServedPersonaInstance, type ServePersonaOptions, servePersonaOn } from './serve-persona.ts';
import { type ServedTool, type ServeToolOptions, serveToolOn } from './serve-tool.ts';
import { Session } from './session-handle.ts';
import { listingFrom, type SessionListing } from './session-listing.ts';

/** An approval that somebody is waited for. */
export type PendingApproval = SessionStatus['approvals'][number] & { readonly session_id: string };

/**
 * Connects to a bus.
 * @throws when no server answers in time, or none lets this client in.
 */
export async function connect(options: ConnectOptions): Promise<Client> {
  const tenant = readId(TenantId, 'tenant', options.tenant ?? 'default');
  const nc = await connectNats(natsOptions(options));
  return new Client(nc, tenant, options.inboxPrefix);
}

/** A connected client. Close it when done: it keeps the process alive. */
export class Client {
  readonly tenant: TenantId;
  readonly #nc: NatsConnection;
  readonly #js: JetStreamClient;
  readonly #inboxPrefix: string | undefined;
  #closing = false;

  /** Made by {@link connect}. */
  constructor(nc: NatsConnection, tenant: TenantId, inboxPrefix: string | undefined) {
    this.#nc = nc;
    this.#js = jetstream(nc);
    this.#inboxPrefix = inboxPrefix;
    this.tenant = tenant;
  }

  /**
   * A handle on a session, which need not exist yet.
   * @throws InvalidIdError where the id is none.
   */
  session(id: string): Session {
    return new Session(this.#bus, this.#ref(id));
  }

  /** How long the server takes to answer, milliseconds. @throws where there is no connection at the moment. */
  roundTripMs(): Promise<number> {
    return this.#nc.rtt();
  }

  /**
   * Starts a session under a new id, or the given one.
   * @returns the session and the stored command, with its receipt if one was waited for.
   */
  async startSession(
    body: BodyInput<'start'>,
    { sessionId, ...options }: SendOptions & { readonly sessionId?: string | undefined } = {},
  ): Promise<{ readonly session: Session; readonly sent: SentCommand }> {
    const ref = this.#ref(sessionId ?? newSessionId());
    const sent = await sendCommand(this.#bus, ref, 'start', body, options);
    return { session: new Session(this.#bus, ref), sent };
  }

  /** All sessions of the tenant, the one that was written to last coming last. */
  async sessions(): Promise<SessionListing[]> {
    // A reset of the consumer may bring a session again, newer: the last one counts.
    const newest = new Map<string, SessionListing>();
    for await (const { ref, bytes } of newestRecords(this.#bus, this.tenant)) {
      newest.delete(ref.sessionId);
      newest.set(ref.sessionId, listingFrom(ref.sessionId, bytes));
    }
    return [...newest.values()];
  }

  /** The ids of all sessions of the tenant, in no order. Cheaper than {@link sessions}. */
  sessionIds(): Promise<string[]> {
    return sessionIds(this.#bus, this.tenant);
  }

  /** Every approval that is waited for, across sessions. Asked of hosts, a few sessions at a time. */
  async approvals(): Promise<PendingApproval[]> {
    const parked = (await this.sessions()).filter(({ state }) => topState(state) === 'function_awaiting_approval');
    const found: PendingApproval[] = [];
    const CONCURRENT_QUERIES = 16;
    for (let start = 0; start < parked.length; start += CONCURRENT_QUERIES) {
      const states = await Promise.all(
        parked.slice(start, start + CONCURRENT_QUERIES).map(({ session_id }) => this.session(session_id).state()),
      );
      for (const { session_id, approvals } of states) {
        for (const approval of approvals) found.push({ ...approval, session_id });
      }
    }
    return found;
  }

  /** The bytes of a large field by their hash, or null: what replaying an exported journal needs. */
  blob(sha256: string): Promise<Uint8Array | null> {
    return new RecordDecoder({ nc: this.#nc, inboxPrefix: this.#inboxPrefix }, this.tenant).blob(sha256);
  }

  /**
   * Announces a tool and serves it on this connection until it is stopped. Any number of processes may serve the same.
   * @throws ToolDefinitionError, BusNotPreparedError.
   */
  serveTool<const Schema extends ArgumentSchema | JsonObject>(
    tool: ServedToolDefinition<Schema>,
    options: ServeToolOptions = {},
  ): Promise<ServedTool> {
    return serveToolOn(this.#bus, this.tenant, tool as unknown as ServedToolDefinition, options);
  }

  /**
   * Announces a persona and serves its steps and tools on this connection until it is stopped. Any number of processes may
   * serve the same.
   * @throws PersonaNotServableError, PersonaVersionTakenError, ToolDefinitionError, BusNotPreparedError.
   */
  servePersona(definition: PersonaInput, options: ServePersonaOptions): Promise<ServedPersonaInstance> {
    return servePersonaOn(this.#bus, this.tenant, definition, options);
  }

  /** What the bus is: for checks and messages. */
  busInfo(): Promise<BusInfo> {
    return busInfo(this.#nc);
  }

  /** Closes the connection; loops over events end. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#nc.close();
  }

  /**
   * Resolves when the connection is over: with null after {@link close}, else with why the server does not let this client in any
   * more, for good. From a server that is merely away it is tried again for as long as it takes.
   */
  async closed(): Promise<Error | null> {
    const why = await closedForGood(this.#nc);
    return this.#closing ? null : why;
  }

  get #bus() {
    return { nc: this.#nc, js: this.#js, inboxPrefix: this.#inboxPrefix };
  }

  #ref(id: string): SessionRef {
    return sessionRef(id, this.tenant);
  }
}
