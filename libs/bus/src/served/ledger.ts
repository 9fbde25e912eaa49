import { type CallEnding, SERVED_BOUNDS, type ServedHookAnswer, type WorkReport } from '@coxswain/protocol';

/** A report without its common members. */
export type ReportBody = WorkReport extends infer One
  ? One extends WorkReport
    ? Omit<One, 'v' | 'key' | 'instance'>
    : never
  : never;

/** Reports to the sender of a request. Must not throw. */
export type SendReport = (report: ReportBody) => void;

/** The ending of a request: that of a call, or the answer of a hook. */
export type WorkEnding = CallEnding | { readonly answer: ServedHookAnswer };

/** A request in the ledger. */
export interface LedgerEntry {
  readonly key: string;
  readonly stop: AbortController;
  /** The newest epoch that has requested it; 0 for a question to a hook. */
  epoch: number;
  /** Reports to the last sender of a request for it. */
  send: SendReport;
  /** It was cancelled before its request arrived. It must not start; whether it ran elsewhere is unknown. */
  neverRan: boolean;
  /** Why this process aborted it before its end: then its outcome is unknown. Otherwise null. */
  givenUp: string | null;
  /** The epoch of its outcome, which is sent as a command; null before that is certain. */
  accepted: number | null;
  ending: WorkEnding | null;
}

/** The limits of a ledger; see {@link SERVED_BOUNDS}. */
export interface LedgerBounds {
  readonly ledgerEntriesMax: number;
  readonly ledgerMaxBytes: number;
  readonly ledgerMaxAgeMs: number;
  readonly sessionsFencedMax: number;
}

/** Keys of at most 384 bytes. */
const DROPPED_MAX = 65_536;

/**
 * The requests of one service in a process, by idempotency key.
 *
 * LEDGER-1  A key runs once while the ledger keeps it. A second request for it gets the outcome of the first.
 * LEDGER-2  A running call is never removed. Ended calls are removed oldest first, bounded by number, bytes and age.
 * LEDGER-3  The newest epoch of each remembered session counts; an older owner is rejected from then on.
 */
export class WorkLedger {
  readonly #bounds: LedgerBounds;
  readonly #nowMs: () => number;
  readonly #running = new Map<string, LedgerEntry>();
  /** In the order of their ends. */
  readonly #ended = new Map<string, { readonly entry: LedgerEntry; readonly bytes: number; readonly atMs: number }>();
  readonly #epochs = new Map<string, number>();
  /** Keys of requests that ran and whose outcomes were removed. */
  readonly #dropped = new Set<string>();
  #bytes = 0;

  /** @param nowMs A monotonic clock in milliseconds. */
  constructor(nowMs: () => number, bounds: LedgerBounds = SERVED_BOUNDS) {
    this.#nowMs = nowMs;
    this.#bounds = bounds;
  }

  /** The running requests. */
  get running(): readonly LedgerEntry[] {
    return [...this.#running.values()];
  }

  /** The entry of a request, or null. */
  find(key: string): LedgerEntry | null {
    this.#forget();
    return this.#running.get(key) ?? this.#ended.get(key)?.entry ?? null;
  }

  /** Whether a request ran here and its outcome was removed. The newest {@link DROPPED_MAX} keys are remembered. */
  hasDropped(key: string): boolean {
    return this.#dropped.has(key);
  }

  /** Adds a request that starts. */
  start(key: string, epoch: number, send: SendReport): LedgerEntry {
    const entry: LedgerEntry = {
      key,
      stop: new AbortController(),
      epoch,
      send,
      neverRan: false,
      givenUp: null,
      accepted: null,
      ending: null,
    };
    this.#running.set(key, entry);
    return entry;
  }

  /** Drops a request without keeping its ending: a repeated question to a hook runs again. */
  forget(entry: LedgerEntry): void {
    this.#running.delete(entry.key);
  }

  /** Records the end of a call. @param ending null if its outcome arrives as a command. */
  end(entry: LedgerEntry, ending: WorkEnding | null): void {
    this.#running.delete(entry.key);
    entry.ending = ending;
    const bytes = Buffer.byteLength(JSON.stringify(ending));
    this.#ended.set(entry.key, { entry, bytes, atMs: this.#nowMs() });
    this.#bytes += bytes;
    this.#forget();
  }

  /**
   * Compares an owner's epoch with the newest known one of its session, and remembers the newer.
   * @param epoch undefined for work without an epoch, which is always admitted.
   * @returns whether the owner is the newest.
   */
  admit(session: string, epoch: number | undefined): boolean {
    if (epoch === undefined) return true;
    const newest = this.#epochs.get(session) ?? 0;
    // Moved to the end: the least recently used session is removed first.
    this.#epochs.delete(session);
    this.#epochs.set(session, Math.max(newest, epoch));
    const [oldest] = this.#epochs.keys();
    if (this.#epochs.size > this.#bounds.sessionsFencedMax && oldest !== undefined) this.#epochs.delete(oldest);
    return epoch >= newest;
  }

  #forget(): void {
    const { ledgerEntriesMax, ledgerMaxBytes, ledgerMaxAgeMs } = this.#bounds;
    const oldestMs = this.#nowMs() - ledgerMaxAgeMs;
    for (const [key, { entry, bytes, atMs }] of this.#ended) {
      if (this.#ended.size <= ledgerEntriesMax && this.#bytes <= ledgerMaxBytes && atMs >= oldestMs) return;
      this.#ended.delete(key);
      this.#bytes -= bytes;
      if (!entry.neverRan) this.#dropped.add(key);
      const [oldest] = this.#dropped;
      if (this.#dropped.size > DROPPED_MAX && oldest !== undefined) this.#dropped.delete(oldest);
    }
  }
}
