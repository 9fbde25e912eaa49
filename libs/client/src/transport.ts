/** The transport below the client: NATS, or HTTP through a gateway. The code above it is the same for both. */
import type { Delta, JournalRecord, SessionRef, SessionStatus, TenantId, Verb } from '@coxswain/protocol';
import type { CallGuard } from './call-guard.ts';
import type { BodyInput, SendOptions, SendStage, WireSentCommand } from './outgoing-command.ts';
import type { WirePendingApproval } from './pending-approvals.ts';
import type { ListQuery, WireSessionsPage } from './session-listing.ts';
import type { WireSessionTree } from './session-tree.ts';

/** Where reading starts: at a record number, or at the newest record. */
export type JournalStart = number | 'newest';

/**
 * A durable record, in order. Or a delta; the deltas of an answer are dense from its first character. Or the state of
 * the connection: `false` when it is lost, `true` when it is restored, over HTTP also with each heartbeat of the
 * gateway.
 */
export type WatchItem =
  | { readonly record: JournalRecord; readonly delta?: undefined; readonly connected?: undefined }
  | { readonly delta: Delta; readonly record?: undefined; readonly connected?: undefined }
  | { readonly connected: boolean; readonly record?: undefined; readonly delta?: undefined };

/** A stored record. */
export interface JournalEntry {
  readonly record: JournalRecord;
}

/**
 * Access to one tenant's sessions. Errors have a code. The same failure has the same code over each transport, except a
 * failure of the transport itself (`nats_unreachable`, `gateway_unreachable`).
 */
export interface Transport {
  readonly tenant: TenantId;
  /** Shared by all calls on one connection. */
  readonly guard: CallGuard;

  /** Validates and stores a command, with retries for a limited time. */
  send<V extends Verb>(
    ref: SessionRef,
    verb: V,
    body: BodyInput<V>,
    options: SendOptions<SendStage>,
  ): Promise<WireSentCommand>;

  /**
   * Records from a start on, then live, without gaps or repetitions. Ends when the signal aborts, the caller stops, or
   * on {@link close}.
   * @throws ReadRefusedError `record_not_there` for a start beyond the next record.
   */
  follow(
    ref: SessionRef,
    from: JournalStart,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<JournalRecord, void, undefined>;

  /** As {@link follow}, with deltas and changes of the connection in between. */
  watch(
    ref: SessionRef,
    from: JournalStart,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<WatchItem, void, undefined>;

  /** The stored records; none if the session does not exist. */
  journal(ref: SessionRef, from: number): AsyncGenerator<JournalEntry, void, undefined>;

  /** The lines of an export without line breaks; none if the session does not exist. */
  exportLines(ref: SessionRef, recordsOnly: boolean): AsyncGenerator<Uint8Array, void, undefined>;

  /** The newest record; null if the session does not exist. */
  newest(ref: SessionRef): Promise<JournalRecord | null>;

  /** The number of the newest record; 0 if the session does not exist. */
  lastNumber(ref: SessionRef): Promise<number>;

  /** Queries a session host. */
  state(ref: SessionRef, timeoutMs: number | undefined): Promise<SessionStatus>;

  tree(ref: SessionRef): Promise<WireSessionTree>;

  /** A page of sessions, the most recently changed first. */
  listSessions(query: ListQuery): Promise<WireSessionsPage>;

  /** The pending approvals of all sessions, the longest pending first. */
  approvals(): Promise<WirePendingApproval[]>;

  /** @returns the round-trip time to the NATS server or the gateway, in milliseconds. */
  roundTripMs(): Promise<number>;

  close(): Promise<void>;

  /** Resolves when the connection has ended permanently: with null after {@link close}, otherwise with the reason. */
  closed(): Promise<Error | null>;
}
