/** How sessions are reached: over the bus, or over HTTP by way of a gateway. Everything above it is the same for both. */
import type { Delta, JournalRecord, SessionRef, SessionStatus, TenantId, Verb } from '@coxswain/protocol';
import type { CallGuard } from './call-guard.ts';
import type { BodyInput, SendOptions, SendStage, WireSentCommand } from './outgoing-command.ts';
import type { ListQuery, WireSessionsPage } from './session-listing.ts';
import type { WireSessionTree } from './session-tree.ts';
import type { WirePendingApproval } from './waiting-approvals.ts';

/** Where reading begins: at a record by its number, or at the newest that there is. */
export type JournalStart = number | 'newest';

/**
 * A durable record, in order. Or a delta, complete from the first character of its answer. Or the state of the
 * connection: `false` when it is lost, `true` when it is restored, over HTTP also with each heartbeat of the gateway.
 */
export type WatchItem =
  | { readonly record: JournalRecord; readonly delta?: undefined; readonly connected?: undefined }
  | { readonly delta: Delta; readonly record?: undefined; readonly connected?: undefined }
  | { readonly connected: boolean; readonly record?: undefined; readonly delta?: undefined };

/** A record of those that are stored. */
export interface JournalEntry {
  readonly record: JournalRecord;
}

/**
 * The way to one tenant's sessions. What it throws are errors with a code; the same trouble has the same code whichever way is
 * taken, but for the way itself (`nats_unreachable`, `gateway_unreachable`).
 */
export interface Transport {
  readonly tenant: TenantId;
  /** Shared by all that is called on one connection. */
  readonly guard: CallGuard;

  /** Sends a command whose body has not been checked yet, durably, and as often as it takes within a bound. */
  send<V extends Verb>(
    ref: SessionRef,
    verb: V,
    body: BodyInput<V>,
    options: SendOptions<SendStage>,
  ): Promise<WireSentCommand>;

  /** Records from a start on and then live: no gap, no repeat. Ends when the signal aborts, the caller leaves, or {@link close}. */
  follow(
    ref: SessionRef,
    from: JournalStart,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<JournalRecord, void, undefined>;

  /** The same with deltas in between, and changes of the connection. */
  watch(
    ref: SessionRef,
    from: JournalStart,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<WatchItem, void, undefined>;

  /** The records that are stored now; none where there is no such session. */
  journal(ref: SessionRef, from: number): AsyncGenerator<JournalEntry, void, undefined>;

  /** The lines of an export without their breaks; none where there is no such session. */
  exportLines(ref: SessionRef, recordsOnly: boolean): AsyncGenerator<Uint8Array, void, undefined>;

  /** Null where there is no such session. */
  newest(ref: SessionRef): Promise<JournalRecord | null>;

  /** Of the newest record; 0 where there is no such session. */
  lastNumber(ref: SessionRef): Promise<number>;

  /** Asked of a host. */
  state(ref: SessionRef, timeoutMs: number | undefined): Promise<SessionStatus>;

  tree(ref: SessionRef): Promise<WireSessionTree>;

  /** A page of sessions, the newest first. */
  listSessions(query: ListQuery): Promise<WireSessionsPage>;

  /** Across sessions, the one that has waited longest first. */
  approvals(): Promise<WirePendingApproval[]>;

  /** @returns the round-trip time to the bus or the gateway, milliseconds. */
  roundTripMs(): Promise<number>;

  close(): Promise<void>;

  /** Resolves when it is over for good: with null after {@link close}, else with why. */
  closed(): Promise<Error | null>;
}
