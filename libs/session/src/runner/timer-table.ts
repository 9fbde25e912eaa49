/**
 * The timers that one session waits for: each is put into the store until that has acknowledged it. A timer's id says
 * which it is, so putting it in again, after a recovery, replaces it; one that is not wanted any more is left to fire
 * into the void.
 */
import type { Clock, Log, Timers } from '@coxswain/ports';
import { canonicalJson, type SessionRef, type TimerPayload } from '@coxswain/protocol';
import type { TimerEffect } from '@coxswain/turn';

const RETRY_FIRST_MS = 250;
const RETRY_MAX_MS = 30_000;

/** See the top of the file. */
export class TimerTable {
  readonly #timers: Timers;
  readonly #ref: SessionRef;
  readonly #clock: Clock;
  readonly #log: Log;
  /** Wanted timers by id: still being put into the store, or acknowledged. */
  readonly #wanted = new Map<string, 'open' | 'acknowledged'>();
  readonly #closed = new AbortController();

  constructor(timers: Timers, ref: SessionRef, clock: Clock, log: Log) {
    this.#timers = timers;
    this.#ref = ref;
    this.#clock = clock;
    this.#log = log;
  }

  /** Timers that the store has not acknowledged: without them a session that left memory would sleep for ever. */
  get unacknowledged(): number {
    let count = 0;
    for (const state of this.#wanted.values()) if (state === 'open') count++;
    return count;
  }

  /** Puts what is wanted and missing into the store. Call it after each commit, and after recovery. */
  reconcile(wanted: readonly TimerEffect[]): void {
    // Hardly a step of a session has to do with timers.
    if (wanted.length + this.#wanted.size === 0 || this.#closed.signal.aborted) return;
    for (const id of this.#wanted.keys()) if (!wanted.some((timer) => timer.id === id)) this.#wanted.delete(id);
    for (const timer of wanted) {
      if (this.#wanted.has(timer.id)) continue;
      this.#wanted.set(timer.id, 'open');
      // It handles its own errors, and ends when the timer is not wanted any more or the session is left.
      void this.#schedule(timer);
    }
  }

  /** The session is left: nothing more is tried. */
  close(): void {
    this.#closed.abort();
  }

  async #schedule({ id, dueAtMs }: TimerEffect): Promise<void> {
    const payload: TimerPayload = { effect_id: id, due_at_ms: dueAtMs };
    const bytes = Buffer.from(canonicalJson(payload), 'utf8');
    let delayMs = RETRY_FIRST_MS;
    while (this.#wanted.get(id) === 'open' && !this.#closed.signal.aborted) {
      try {
        await this.#timers.schedule(this.#ref, id, dueAtMs, bytes);
        if (this.#wanted.has(id)) this.#wanted.set(id, 'acknowledged');
        return;
      } catch (error) {
        this.#log.warn(
          { session_id: this.#ref.sessionId, effect_id: id, error: (error as Error).message },
          'a timer could not be scheduled; this host retries',
        );
      }
      await this.#clock.sleep(delayMs, this.#closed.signal);
      delayMs = Math.min(delayMs * 2, RETRY_MAX_MS);
    }
  }
}
