import { TOOL_SERVICE_BOUNDS, type ToolEnded } from '@coxswain/protocol';

/** How a call has ended. */
export type CallEnding = Pick<ToolEnded, 'status' | 'result' | 'edited'>;

/** One call. */
export interface LedgerEntry {
  readonly key: string;
  readonly stop: AbortController;
  /** The newest epoch that has asked for it. */
  epoch: number;
  /** Receives the outcome: the last sender. */
  tell: Tell;
  /** It was cancelled before it was asked to run. It must not start; whether it ran elsewhere is unknown. */
  neverRan: boolean;
  /** Why this process stopped it before it had ended: its outcome is unknown. Null where it has not. */
  givenUp: string | null;
  /** The epoch that its outcome comes with as a command, from when that is certain; null before. */
  accepted: number | null;
  ending: CallEnding | null;
}

/** Notifies the waiting sender of a call. Must not throw. */
export type Tell = (
  what:
    | { readonly type: 'progress' | 'feedback'; readonly text: string }
    | { readonly type: 'ended' | 'given_up' }
    /** `epoch`: the one that the outcome comes with; `asked`: the newest that has asked. */
    | { readonly type: 'accepted'; readonly epoch: number; readonly asked: number },
) => void;

/** How much a ledger keeps; see {@link TOOL_SERVICE_BOUNDS}. */
export interface LedgerBounds {
  readonly ledgerEntriesMax: number;
  readonly ledgerMaxBytes: number;
  readonly ledgerMaxAgeMs: number;
  readonly sessionsFencedMax: number;
}

/**
 * The calls of a process that serves a tool, by idempotency key.
 *
 * G1: A key runs once. A second request for it gets the outcome of the first.
 * G2: A running call is never removed. Ended calls are removed oldest first, bounded by number, bytes and age.
 * G3: The newest epoch of each session counts; an older owner is rejected from then on.
 */
export class ToolLedger {
  readonly #bounds: LedgerBounds;
  readonly #nowMs: () => number;
  readonly #running = new Map<string, LedgerEntry>();
  /** In the order in which they ended. */
  readonly #ended = new Map<string, { readonly entry: LedgerEntry; readonly bytes: number; readonly atMs: number }>();
  readonly #epochs = new Map<string, number>();
  #bytes = 0;

  /** @param nowMs a monotonic clock. */
  constructor(nowMs: () => number, bounds: LedgerBounds = TOOL_SERVICE_BOUNDS) {
    this.#nowMs = nowMs;
    this.#bounds = bounds;
  }

  /** Calls that run. */
  get running(): readonly LedgerEntry[] {
    return [...this.#running.values()];
  }

  /** What is known of a call. */
  find(key: string): LedgerEntry | null {
    this.#forget();
    return this.#running.get(key) ?? this.#ended.get(key)?.entry ?? null;
  }

  /** Enters a call that begins to run. */
  begin(key: string, epoch: number, tell: Tell): LedgerEntry {
    const entry: LedgerEntry = {
      key,
      stop: new AbortController(),
      epoch,
      tell,
      neverRan: false,
      givenUp: null,
      accepted: null,
      ending: null,
    };
    this.#running.set(key, entry);
    return entry;
  }

  /** Enters how a call has ended. */
  end(entry: LedgerEntry, ending: CallEnding): void {
    this.#running.delete(entry.key);
    entry.ending = ending;
    const bytes = Buffer.byteLength(JSON.stringify(ending));
    this.#ended.set(entry.key, { entry, bytes, atMs: this.#nowMs() });
    this.#bytes += bytes;
    this.#forget();
  }

  /**
   * Holds an owner's epoch against the newest that was heard of for its session, and remembers it.
   * @returns whether the owner is the newest.
   */
  admit(session: string, epoch: number): boolean {
    const newest = this.#epochs.get(session) ?? 0;
    // Put at the end: the session that was heard of least recently goes first.
    this.#epochs.delete(session);
    this.#epochs.set(session, Math.max(newest, epoch));
    const [oldest] = this.#epochs.keys();
    if (this.#epochs.size > this.#bounds.sessionsFencedMax && oldest !== undefined) this.#epochs.delete(oldest);
    return epoch >= newest;
  }

  #forget(): void {
    const { ledgerEntriesMax, ledgerMaxBytes, ledgerMaxAgeMs } = this.#bounds;
    const oldestMs = this.#nowMs() - ledgerMaxAgeMs;
    for (const [key, { bytes, atMs }] of this.#ended) {
      if (this.#ended.size <= ledgerEntriesMax && this.#bytes <= ledgerMaxBytes && atMs >= oldestMs) return;
      this.#ended.delete(key);
      this.#bytes -= bytes;
    }
  }
}
