import { awaitPermanentClose, busErrorOf } from '@coxswain/bus';
import type { JournalRecord, SessionRef, SessionStatus, TenantId, Verb } from '@coxswain/protocol';
import { CallGuard } from './call-guard.ts';
import { SessionNotFoundError } from './client-errors.ts';
import { Closing } from './closing.ts';
import { expectStart } from './expect-start.ts';
import { exportLines } from './export-journal.ts';
import { RecordDecoder } from './large-fields.ts';
import { type ListPlace, type NewestSessions, newestSessions, placeInList, sessionsSince } from './newest-sessions.ts';
import type { BodyInput, SendOptions, SendStage, WireSentCommand } from './outgoing-command.ts';
import { LOOKED_AT_MAX, pageOf } from './page-of-sessions.ts';
import {
  type ApprovalsQuery,
  pageOfApprovals,
  pendingApprovals,
  type WireApprovalsPage,
  type WirePendingApproval,
} from './pending-approvals.ts';
import { queryState } from './query-state.ts';
import {
  followJournal,
  lastNumber,
  lastRecord,
  readJournal,
  type StoredJournalRecord,
  sessionIds,
} from './read-journal.ts';
import { type CommandBus, sendCommand } from './send-command.ts';
import type { ListQuery, WireSessionsPage } from './session-listing.ts';
import { readTree, type WireSessionTree } from './session-tree.ts';
import type { JournalStart, Transport, WatchItem } from './transport.ts';
import { watchSession } from './watch-session.ts';

/** The number of buffered records of an export, each of up to 512 KiB: it is read at the speed of its reader. */
const EXPORTED_AT_ONCE = 16;
/** The maximum lag of a replica that reads may meet, in milliseconds. */
const REPLICA_LAG_MS = 2_000;

/** The transport over NATS: publishes commands and reads journals. */
export class BusTransport implements Transport {
  readonly bus: CommandBus;
  readonly tenant: TenantId;
  /** Shared by all tenants of a connection. */
  readonly guard: CallGuard;

  constructor(bus: CommandBus, tenant: TenantId, guard = new CallGuard(new Closing(), busErrorOf)) {
    this.bus = bus;
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
    await expectStart(from, () => this.lastNumber(ref), REPLICA_LAG_MS);
    const records = followJournal(this.bus.nc, ref, from, signal);
    for await (const { record } of this.#whileConnected(records, signal)) yield record;
  }

  async *watch(
    ref: SessionRef,
    from: JournalStart,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<WatchItem, void, undefined> {
    await expectStart(from, () => this.lastNumber(ref), REPLICA_LAG_MS);
    yield* this.#whileConnected(watchSession(this.bus.nc, ref, from, signal), signal);
  }

  journal(ref: SessionRef, from: number): AsyncGenerator<StoredJournalRecord, void, undefined> {
    return readJournal(this.bus.nc, ref, from);
  }

  async *exportLines(ref: SessionRef, recordsOnly: boolean): AsyncGenerator<Uint8Array, void, undefined> {
    const decoder = new RecordDecoder(this.bus.nc, ref.tenant);
    const records = readJournal(this.bus.nc, ref, 1, { atOnce: EXPORTED_AT_ONCE });
    yield* exportLines(records, async (sha256) => (recordsOnly ? null : decoder.blob(sha256)));
  }

  newest(ref: SessionRef): Promise<JournalRecord | null> {
    return lastRecord(this.bus.nc, ref);
  }

  lastNumber(ref: SessionRef): Promise<number> {
    return lastNumber(this.bus.nc, ref);
  }

  state(ref: SessionRef, timeoutMs: number | undefined): Promise<SessionStatus> {
    return queryState(this.bus.nc, ref, timeoutMs);
  }

  tree({ tenant, sessionId }: SessionRef): Promise<WireSessionTree> {
    return readTree((id) => this.journal({ tenant, sessionId: id as SessionRef['sessionId'] }, 1), sessionId);
  }

  newestSessions(after: ListPlace | null = null): Promise<NewestSessions> {
    return newestSessions(this.bus.nc, this.tenant, after);
  }

  placeInList(ref: SessionRef): Promise<ListPlace | null> {
    return placeInList(this.bus.nc, ref);
  }

  async listSessions(query: ListQuery): Promise<WireSessionsPage> {
    const source = {
      list: async (after: ListPlace | null) => (await this.newestSessions(after)).sessions,
      since: (seq: number) => sessionsSince(this.bus.nc, this.tenant, seq, LOOKED_AT_MAX),
    };
    return pageOf(source, query, (id) => this.#stateOf(id));
  }

  async approvals(): Promise<WirePendingApproval[]> {
    const { sessions } = await this.newestSessions();
    return pendingApprovals(sessions, (id) => whereThere(this.#stateOf(id)));
  }

  async pageOfApprovals(query: ApprovalsQuery): Promise<WireApprovalsPage> {
    const { sessions } = await this.newestSessions();
    return pageOfApprovals(sessions, (id) => whereThere(this.#stateOf(id)), query);
  }

  #stateOf(id: string): Promise<SessionStatus> {
    return this.state({ tenant: this.tenant, sessionId: id as SessionRef['sessionId'] }, undefined);
  }

  sessionIds(): Promise<string[]> {
    return sessionIds(this.bus.nc, this.tenant);
  }

  roundTripMs(): Promise<number> {
    return this.bus.nc.rtt();
  }

  async close(): Promise<void> {
    this.guard.closing.close();
    await this.bus.nc.close();
  }

  async closed(): Promise<Error | null> {
    const why = await awaitPermanentClose(this.bus.nc);
    return this.guard.closing.isClosed ? null : why;
  }

  /** @throws CoxswainError `nats_unreachable` if the server closed the connection permanently. */
  async *#whileConnected<T>(
    items: AsyncGenerator<T, void, undefined>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<T, void, undefined> {
    const { nc } = this.bus;
    try {
      yield* items;
    } catch (error) {
      throw this.guard.closing.isClosed || !nc.isClosed() ? error : await awaitPermanentClose(nc);
    }
    if (nc.isClosed() && !this.guard.closing.isClosed && !signal?.aborted) throw await awaitPermanentClose(nc);
  }
}

/** A session that was deleted since the list was read has no pending approvals. */
async function whereThere(status: Promise<SessionStatus>): Promise<SessionStatus | null> {
  return status.catch((error: unknown) => {
    if (error instanceof SessionNotFoundError) return null;
    throw error;
  });
}
