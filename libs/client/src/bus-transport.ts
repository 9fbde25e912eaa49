import type { JournalRecord, SessionRef, SessionStatus, TenantId, Verb } from '@coxswain/protocol';
import { type JetStreamClient, jetstream } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { asTrouble } from './ask-store.ts';
import { CallGuard } from './call-guard.ts';
import { SessionNotFoundError } from './client-errors.ts';
import { Closing } from './closing.ts';
import { closedForGood } from './connected-nats.ts';
import { exportLines } from './export-journal.ts';
import { RecordDecoder } from './large-fields.ts';
import { type NewestSessions, newestFirst, newestSessions, type PlacedSession } from './newest-sessions.ts';
import type { BodyInput, SendOptions, SendStage, WireSentCommand } from './outgoing-command.ts';
import { pageOf } from './page-of-sessions.ts';
import { queryState } from './query-state.ts';
import {
  followJournal,
  lastNumber,
  lastRecord,
  type NewestRecord,
  type NotServed,
  newestRecords,
  readJournal,
  type StoredJournalRecord,
  sessionIds,
} from './read-journal.ts';
import { sendCommand } from './send-command.ts';
import {
  type ListQuery,
  listingFrom,
  unreadableListing,
  type WireSessionListing,
  type WireSessionsPage,
} from './session-listing.ts';
import { readTree, type WireSessionTree } from './session-tree.ts';
import type { JournalStart, Transport, WatchItem } from './transport.ts';
import { type WirePendingApproval, waitingApprovals } from './waiting-approvals.ts';
import { watchSession } from './watch-session.ts';

/** A connection, and where answers to its user may go. */
export interface BusConnection {
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly inboxPrefix: string | undefined;
  /** Who acts where a command does not say it. */
  readonly actor?: string | undefined;
}

/** The transport over NATS: commands into its stream, records out of its journals. */
export class BusTransport implements Transport {
  readonly bus: BusConnection;
  readonly tenant: TenantId;
  /** Shared by all tenants of a connection. */
  readonly guard: CallGuard;

  constructor(
    { nc, inboxPrefix, actor }: Omit<BusConnection, 'js'>,
    tenant: TenantId,
    guard = new CallGuard(new Closing(), asTrouble),
  ) {
    this.bus = { nc, js: jetstream(nc), inboxPrefix, actor };
    this.tenant = tenant;
    this.guard = guard;
  }

  /** The same connection for another tenant. */
  forTenant(tenant: TenantId): BusTransport {
    return new BusTransport(this.bus, tenant, this.guard);
  }

  send<V extends Verb>(
    ref: SessionRef,
    verb: V,
    body: BodyInput<V>,
    options: SendOptions<SendStage>,
  ): Promise<WireSentCommand> {
    return sendCommand(this.bus, ref, verb, body, options);
  }

  async *follow(
    ref: SessionRef,
    from: JournalStart,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<JournalRecord, void, undefined> {
    const records = followJournal(this.bus, ref, from, signal);
    for await (const { record } of this.#whileConnected(records, signal)) yield record;
  }

  watch(
    ref: SessionRef,
    from: JournalStart,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<WatchItem, void, undefined> {
    return this.#whileConnected(watchSession(this.bus, ref, from, signal), signal);
  }

  journal(ref: SessionRef, from: number): AsyncGenerator<StoredJournalRecord, void, undefined> {
    return readJournal(this.bus, ref, from);
  }

  async *exportLines(ref: SessionRef, recordsOnly: boolean): AsyncGenerator<Uint8Array, void, undefined> {
    const decoder = new RecordDecoder(this.bus, ref.tenant);
    yield* exportLines(this.journal(ref, 1), async (sha256) => (recordsOnly ? null : decoder.blob(sha256)));
  }

  newest(ref: SessionRef): Promise<JournalRecord | null> {
    return lastRecord(this.bus, ref);
  }

  lastNumber(ref: SessionRef): Promise<number> {
    return lastNumber(this.bus, ref);
  }

  state(ref: SessionRef, timeoutMs: number | undefined): Promise<SessionStatus> {
    return queryState(this.bus.nc, ref, timeoutMs);
  }

  tree({ tenant, sessionId }: SessionRef): Promise<WireSessionTree> {
    return readTree((id) => this.journal({ tenant, sessionId: id as SessionRef['sessionId'] }, 1), sessionId);
  }

  async listings(): Promise<WireSessionListing[]> {
    // A reset of the consumer may bring a session again, newer: the last one counts.
    const newest = new Map<string, WireSessionListing>();
    for await (const found of newestRecords(this.bus, this.tenant)) {
      newest.delete(found.ref.sessionId);
      newest.set(found.ref.sessionId, listingOfNewest(found));
    }
    return [...newest.values()];
  }

  newestSessions(): Promise<NewestSessions> {
    return newestSessions(this.bus, this.tenant);
  }

  async listSessions(query: ListQuery): Promise<WireSessionsPage> {
    const { sessions } = query.state === undefined ? await this.newestSessions() : this.#allRead();
    return pageOf(sessions, query, (id) => this.#stateOf(id));
  }

  /** Of a state there may be few: then every newest record is read, at once. */
  #allRead(): Pick<NewestSessions, 'sessions'> {
    const { bus, tenant } = this;
    async function* read() {
      const found = new Map<string, PlacedSession>();
      for await (const newest of newestRecords(bus, tenant)) {
        const { sessionId } = newest.ref;
        const listing = listingOfNewest(newest);
        found.set(sessionId, { sessionId, writtenNs: newest.writtenNs, listing: async () => listing });
      }
      yield* [...found.values()].sort(newestFirst);
    }
    return { sessions: read() };
  }

  async approvals(): Promise<WirePendingApproval[]> {
    return waitingApprovals(await this.listings(), (id) => whereThere(this.#stateOf(id)));
  }

  #stateOf(id: string): Promise<SessionStatus> {
    return this.state({ tenant: this.tenant, sessionId: id as SessionRef['sessionId'] }, undefined);
  }

  sessionIds(): Promise<string[]> {
    return sessionIds(this.bus, this.tenant);
  }

  roundTripMs(): Promise<number> {
    return this.bus.nc.rtt();
  }

  async close(): Promise<void> {
    this.guard.closing.close();
    await this.bus.nc.close();
  }

  async closed(): Promise<Error | null> {
    const why = await closedForGood(this.bus.nc);
    return this.guard.closing.isClosed ? null : why;
  }

  /** @throws an error that says why the connection is over, if the server ended it for good. */
  async *#whileConnected<T>(
    items: AsyncGenerator<T, void, undefined>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<T, void, undefined> {
    const { nc } = this.bus;
    try {
      yield* items;
    } catch (error) {
      throw this.guard.closing.isClosed || !nc.isClosed() ? error : await closedForGood(nc);
    }
    if (nc.isClosed() && !this.guard.closing.isClosed && !signal?.aborted) throw await closedForGood(nc);
  }
}

/** One that was deleted between two looks waits for nobody. */
async function whereThere(status: Promise<SessionStatus>): Promise<SessionStatus | null> {
  return status.catch((error: unknown) => {
    if (error instanceof SessionNotFoundError) return null;
    throw error;
  });
}

function listingOfNewest(found: NewestRecord | NotServed): WireSessionListing {
  const { sessionId } = found.ref;
  return found.bytes === null ? unreadableListing(sessionId, found.problem) : listingFrom(sessionId, found.bytes);
}
