/**
 * What the runners of sessions that this host has left had not recorded (R9): kept for the session's next runner here, until
 * another host has the session. From then on it is late: it is dropped, and the log says so.
 */
import type { Log } from '@coxswain/ports';
import { type SessionRef, subjects } from '@coxswain/protocol';
import { noteLate } from '../effects/effect-table.ts';
import { noteLostFeedback } from '../runner/feedback-buffer.ts';
import type { Carried } from '../runner/session-runner.ts';

/** See the top of the file. */
export class LeftBehind {
  readonly #log: Log;
  readonly #kept = new Map<string, { readonly ref: SessionRef; readonly carried: Carried }>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Keeps what a runner has left. */
  keep(ref: SessionRef, carried: Carried): void {
    if (carried.outcomes.size > 0 || !carried.feedback.isEmpty || carried.unsettled)
      this.#kept.set(subjects.journal(ref), { ref, carried });
  }

  /** Hands on what is kept of a session, and keeps it no more. */
  take(ref: SessionRef): Carried | undefined {
    const key = subjects.journal(ref);
    const carried = this.#kept.get(key)?.carried;
    this.#kept.delete(key);
    return carried;
  }

  /** Another host has these sessions. */
  drop(isOthers: (ref: SessionRef) => boolean): void {
    for (const [key, { ref, carried }] of this.#kept) {
      if (!isOthers(ref)) continue;
      this.#kept.delete(key);
      for (const effectId of carried.outcomes.keys()) noteLate(this.#log, ref.sessionId, effectId);
      if (!carried.feedback.isEmpty) noteLostFeedback(this.#log, ref.sessionId);
    }
  }
}
