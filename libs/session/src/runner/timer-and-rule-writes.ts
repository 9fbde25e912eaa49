/**
 * Writes of a session's timers to the timer store, and of the rules that its persona remembers to the store of rules. A
 * write is retried until the store acknowledges it, the session no longer waits for the timer, or the runner leaves the
 * session. The session's next runner stores each item once more, under the same key.
 *
 * The store delivers a due timer to the session's inbox (`Timers` in libs/ports), also while no host has the session. A
 * timer that is stored again after its delivery is delivered once more. `SessionIntake.#takeTimer` (session-intake.ts)
 * drops a timer that the session no longer waits for.
 */
import type { Clock, Log, RememberedRules, Timers } from '@coxswain/ports';
import {
  type BackOff,
  canonicalJson,
  delayAfter,
  type SessionRef,
  type StoredRule,
  type TimerPayload,
} from '@coxswain/protocol';
import type { TimerEffect } from '@coxswain/turn';

const BACK_OFF: BackOff = { firstMs: 250, maxMs: 30_000 };

/** The writes of one session to one store. */
export class StoreWrites<Item> {
  readonly #clock: Clock;
  readonly #store: (item: Item) => Promise<void>;
  readonly #onFailure: (item: Item, error: Error) => void;
  readonly #items = new Map<string, 'open' | 'acknowledged'>();
  readonly #closed = new AbortController();

  /**
   * @param store stores an item. It rejects where the store does not acknowledge it.
   * @param onFailure logs a failed attempt.
   */
  constructor(clock: Clock, store: (item: Item) => Promise<void>, onFailure: (item: Item, error: Error) => void) {
    this.#clock = clock;
    this.#store = store;
    this.#onFailure = onFailure;
  }

  /** Items without an acknowledgement. They keep the session in memory. */
  get unacknowledged(): number {
    let count = 0;
    for (const state of this.#items.values()) if (state === 'open') count++;
    return count;
  }

  /** Stores an item, unless its key is known. Contract: does not throw, and retries by itself. */
  add(key: string, item: Item): void {
    if (this.#closed.signal.aborted || this.#items.has(key)) return;
    this.#items.set(key, 'open');
    void this.#storeWithRetries(key, item);
  }

  /** Forgets the items that are no longer wanted, and ends their retries. The store keeps what it has. */
  forgetExcept(isWanted: (key: string) => boolean): void {
    for (const key of this.#items.keys()) if (!isWanted(key)) this.#items.delete(key);
  }

  /** Ends all retries, and accepts no more items: the session is left. */
  close(): void {
    // With a reason: without one, each abort creates an error with a stack trace.
    this.#closed.abort('closed');
  }

  /** The number of attempts has no bound, because the session depends on the item; their delays have one. */
  async #storeWithRetries(key: string, item: Item): Promise<void> {
    const { signal } = this.#closed;
    for (let failures = 1; this.#items.get(key) === 'open' && !signal.aborted; failures++) {
      try {
        await this.#store(item);
        if (this.#items.has(key)) this.#items.set(key, 'acknowledged');
        return;
      } catch (error) {
        this.#onFailure(item, error as Error);
      }
      await this.#clock.sleep(delayAfter(failures, BACK_OFF), signal);
    }
  }
}

/** The timers of a session, by effect id. A timer that the session no longer waits for fires, and is ignored. */
export function timerWrites(timers: Timers, ref: SessionRef, clock: Clock, log: Log): StoreWrites<TimerEffect> {
  return new StoreWrites<TimerEffect>(
    clock,
    ({ id, dueAtMs }) => {
      const payload: TimerPayload = { effect_id: id, due_at_ms: dueAtMs };
      return timers.schedule(ref, id, dueAtMs, Buffer.from(canonicalJson(payload), 'utf8'));
    },
    ({ id }, { message }) =>
      log.warn(
        { session_id: ref.sessionId, effect_id: id, error: message },
        'a timer could not be scheduled; this host retries',
      ),
  );
}

/** The rules that the session's persona remembers for later sessions, by id and whether they are revoked. */
export function ruleWrites(rules: RememberedRules, ref: SessionRef, clock: Clock, log: Log): StoreWrites<StoredRule> {
  return new StoreWrites<StoredRule>(
    clock,
    (stored) => rules.keep(ref.tenant, stored),
    ({ rule }, { message }) =>
      log.warn(
        { session_id: ref.sessionId, rule: rule.id, error: message },
        'a remembered rule could not be stored for later sessions; this host retries',
      ),
  );
}
