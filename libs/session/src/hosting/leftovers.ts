/**
 * Leftovers: outcomes and feedback that a runner had not recorded when it left its session (RUNNER-9). The session's next
 * runner on this host takes them. Once another host owns the session they are late: they are dropped and logged.
 */
import type { Log } from '@coxswain/ports';
import { type SessionRef, sessionKey } from '@coxswain/protocol';
import { noteLostFeedback } from '../runner/feedback-buffer.ts';
import type { Carried } from '../runner/session-exit.ts';
import { noteLate } from '../runner/session-work.ts';

/** The leftovers of all sessions of this host. */
export class Leftovers {
  readonly #log: Log;
  readonly #kept = new Map<string, { readonly ref: SessionRef; readonly carried: Carried }>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Keeps the leftovers of a runner. */
  keep(ref: SessionRef, carried: Carried): void {
    if (carried.outcomes.size > 0 || !carried.feedback.isEmpty || carried.unsettled)
      this.#kept.set(sessionKey(ref), { ref, carried });
  }

  /** Removes the leftovers of a session. @returns them, or undefined. */
  take(ref: SessionRef): Carried | undefined {
    const key = sessionKey(ref);
    const carried = this.#kept.get(key)?.carried;
    this.#kept.delete(key);
    return carried;
  }

  /** Drops the leftovers of sessions that other hosts own. */
  drop(isOthers: (ref: SessionRef) => boolean): void {
    for (const [key, { ref, carried }] of this.#kept) {
      if (!isOthers(ref)) continue;
      this.#kept.delete(key);
      for (const effectId of carried.outcomes.keys()) noteLate(this.#log, ref.sessionId, effectId);
      if (!carried.feedback.isEmpty) noteLostFeedback(this.#log, ref.sessionId);
    }
  }
}
