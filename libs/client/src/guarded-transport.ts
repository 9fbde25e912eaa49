/** A transport whose calls follow the rules of `CallGuard`. */
import type { JournalRecord, SessionRef, SessionStatus, TenantId, Verb } from '@coxswain/protocol';
import type { CallGuard } from './call-guard.ts';
import type { BodyInput, SendOptions, SendStage, WireSentCommand } from './outgoing-command.ts';
import type { WirePendingApproval } from './pending-approvals.ts';
import type { ListQuery, WireSessionsPage } from './session-listing.ts';
import type { WireSessionTree } from './session-tree.ts';
import type { JournalEntry, JournalStart, Transport, WatchItem } from './transport.ts';

/** Wraps a transport: `CallGuard` guards each call except {@link close} and {@link closed}. */
export class GuardedTransport implements Transport {
  readonly guard: CallGuard;
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.guard = transport.guard;
    this.#transport = transport;
  }

  get tenant(): TenantId {
    return this.#transport.tenant;
  }

  send<V extends Verb>(
    ref: SessionRef,
    verb: V,
    body: BodyInput<V>,
    options: SendOptions<SendStage>,
  ): Promise<WireSentCommand> {
    const { signal } = options;
    return this.guard.call((stop) => this.#transport.send(ref, verb, body, { ...options, signal: stop }), signal);
  }

  follow(
    ref: SessionRef,
    from: JournalStart,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<JournalRecord, void, undefined> {
    return this.guard.follow((stop) => this.#transport.follow(ref, from, stop), signal);
  }

  watch(
    ref: SessionRef,
    from: JournalStart,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<WatchItem, void, undefined> {
    return this.guard.follow((stop) => this.#transport.watch(ref, from, stop), signal);
  }

  journal(ref: SessionRef, from: number): AsyncGenerator<JournalEntry, void, undefined> {
    return this.guard.read(() => this.#transport.journal(ref, from));
  }

  exportLines(ref: SessionRef, recordsOnly: boolean): AsyncGenerator<Uint8Array, void, undefined> {
    return this.guard.read(() => this.#transport.exportLines(ref, recordsOnly));
  }

  newest(ref: SessionRef): Promise<JournalRecord | null> {
    return this.guard.call(() => this.#transport.newest(ref));
  }

  lastNumber(ref: SessionRef): Promise<number> {
    return this.guard.call(() => this.#transport.lastNumber(ref));
  }

  state(ref: SessionRef, timeoutMs: number | undefined): Promise<SessionStatus> {
    return this.guard.call(() => this.#transport.state(ref, timeoutMs));
  }

  tree(ref: SessionRef): Promise<WireSessionTree> {
    return this.guard.call(() => this.#transport.tree(ref));
  }

  listSessions(query: ListQuery): Promise<WireSessionsPage> {
    return this.guard.call(() => this.#transport.listSessions(query));
  }

  approvals(): Promise<WirePendingApproval[]> {
    return this.guard.call(() => this.#transport.approvals());
  }

  roundTripMs(): Promise<number> {
    return this.guard.call(() => this.#transport.roundTripMs());
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  closed(): Promise<Error | null> {
    return this.#transport.closed();
  }
}
