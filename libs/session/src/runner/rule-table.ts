/**
 * What a session's people have its persona remember, on its way to where later sessions find it. The journal says what was
 * remembered; each rule is put there until that is acknowledged, once more after each recovery, which changes nothing.
 */
import type { Clock, Log, RememberedRules } from '@coxswain/ports';
import type { SessionRef, StoredRule } from '@coxswain/protocol';
import type { SessionContext } from '@coxswain/turn';

const RETRY_FIRST_MS = 250;
const RETRY_MAX_MS = 30_000;

/** See the top of the file. */
export class RuleTable {
  readonly #store: RememberedRules | undefined;
  readonly #ref: SessionRef;
  readonly #clock: Clock;
  readonly #log: Log;
  /** By id, and whether it is revoked: still on their way, or there. */
  readonly #known = new Map<string, 'open' | 'kept'>();
  readonly #closed = new AbortController();

  constructor(store: RememberedRules | undefined, ref: SessionRef, clock: Clock, log: Log) {
    this.#store = store;
    this.#ref = ref;
    this.#clock = clock;
    this.#log = log;
  }

  /** Rules that were not acknowledged: a session that left memory would leave them behind. */
  get unacknowledged(): number {
    let count = 0;
    for (const state of this.#known.values()) if (state === 'open') count++;
    return count;
  }

  /** Puts there what is missing. Call it after each commit, and after recovery. */
  reconcile(rules: SessionContext['remembered']): void {
    const store = this.#store;
    // Hardly a step of a session has to do with rules.
    if (rules.length === 0 || !store || this.#closed.signal.aborted) return;
    for (const { revoked, ...rule } of rules) {
      const key = `${rule.id} ${revoked ? 'revoked' : 'holds'}`;
      if (rule.scope !== 'persona' || this.#known.has(key)) continue;
      this.#known.set(key, 'open');
      // It handles its own errors, and ends when the session is left.
      void this.#keep(store, key, { rule, ...(revoked ? { revoked } : {}) });
    }
  }

  /** The session is left: nothing more is tried. */
  close(): void {
    this.#closed.abort();
  }

  async #keep(store: RememberedRules, key: string, stored: StoredRule): Promise<void> {
    let delayMs = RETRY_FIRST_MS;
    while (!this.#closed.signal.aborted) {
      try {
        await store.keep(this.#ref.tenant, stored);
        this.#known.set(key, 'kept');
        return;
      } catch (error) {
        this.#log.warn(
          { session_id: this.#ref.sessionId, rule: stored.rule.id, error: (error as Error).message },
          'a remembered rule could not be stored for later sessions; this host retries',
        );
      }
      await this.#clock.sleep(delayMs, this.#closed.signal);
      delayMs = Math.min(delayMs * 2, RETRY_MAX_MS);
    }
  }
}
