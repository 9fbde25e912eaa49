/**
 * The effects that are running for one session: started once, aborted when they are no longer wanted, each outcome
 * kept until a record that holds it is acknowledged (RUNNER-6, RUNNER-9).
 */
import type { Clock, Log } from '@coxswain/ports';
import { type Outcome, SESSION_LEFT } from '@coxswain/protocol';
import type { WorkEffect } from '@coxswain/turn';

/** How effects are carried out. Neither rejects. */
export interface EffectWorker {
  /** Does the work of one effect. `taken` is to be called once it goes on without this process (see `ToolCall.onTaken`). */
  perform(effect: WorkEffect, signal: AbortSignal, taken: () => void): Promise<Outcome>;
  /** The outcome of an effect that is stopped before or instead of its work. `timedOut`: it did not stop in its grace. */
  stopped(effect: WorkEffect, reason: string, timedOut: boolean): Outcome;
}

interface Running {
  readonly effect: WorkEffect;
  readonly controller: AbortController;
  /** Its outcome has been handed on, or it was given up. */
  settled: boolean;
  /** Ends the grace that runs since it was told to stop. */
  grace: AbortController | null;
  /** It goes on without this process, and the session's next owner can learn what becomes of it. */
  isElsewhere: boolean;
}

/** The table of one session's effects. */
export class EffectTable {
  readonly #running = new Map<string, Running>();
  readonly #kept: Map<string, Outcome>;
  readonly #sessionId: string;
  readonly #worker: EffectWorker;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #offer: (outcome: Outcome) => void;
  readonly #broken: (error: Error) => void;
  #closed = false;

  /**
   * @param sessionId whose they are, for the log.
   * @param carried outcomes that an earlier runner of the session had, and no record holds yet.
   */
  constructor(
    sessionId: string,
    worker: EffectWorker,
    clock: Clock,
    log: Log,
    to: { offer(outcome: Outcome): void; broken(error: Error): void },
    carried: ReadonlyMap<string, Outcome> = new Map(),
  ) {
    this.#sessionId = sessionId;
    this.#worker = worker;
    this.#clock = clock;
    this.#log = log;
    this.#offer = to.offer;
    this.#broken = to.broken;
    this.#kept = new Map(carried);
  }

  /** Effects whose work goes on. */
  get running(): number {
    let count = 0;
    for (const { settled } of this.#running.values()) if (!settled) count++;
    return count;
  }

  /** Whether one of these kinds has to end before the session can be left without harm. One that is being stopped has. */
  keeps(kinds: readonly WorkEffect['kind'][]): boolean {
    for (const { settled, effect, isElsewhere, grace } of this.#running.values())
      if (!settled && kinds.includes(effect.kind) && !(isElsewhere && grace === null)) return true;
    return false;
  }

  /** Starts what is wanted and missing, stops what is not wanted any more. Call it after each commit, and after recovery. */
  reconcile(wanted: readonly WorkEffect[], mayStart: (effect: WorkEffect) => boolean): void {
    if (this.#closed) return;
    const ids = new Set(wanted.map((effect) => effect.id));
    for (const [id, entry] of this.#running) {
      if (ids.has(id)) continue;
      // What has settled has nothing left to stop, and an abort makes an error with a stack, once for every effect.
      if (!entry.settled) entry.controller.abort();
      entry.grace?.abort();
      this.#running.delete(id);
    }
    for (const id of this.#kept.keys()) if (!ids.has(id)) this.#kept.delete(id);
    for (const effect of wanted) {
      let entry = this.#running.get(effect.id);
      // A call that was taken up elsewhere goes on under its id as something else: the order to stop it.
      if (entry && entry.effect.kind !== effect.kind) {
        entry.settled = true;
        entry.grace?.abort();
        this.#running.delete(effect.id);
        this.#kept.delete(effect.id);
        entry = undefined;
      }
      if (this.#kept.get(effect.id)?.type === 'call_accepted' && isOrderToStop(effect)) this.#kept.delete(effect.id);
      if (entry) this.#stopIfAsked(entry, effect);
      else if (effect.abort || this.#kept.has(effect.id) || mayStart(effect)) this.#start(effect);
    }
  }

  /**
   * After a refold: offers again what is settled and still wanted (RUNNER-9). An outcome that broke the machine before is
   * replaced by a plain stop, so that the run can end.
   */
  offerAgain(poisoned: ReadonlySet<string>): void {
    for (const [id, outcome] of [...this.#kept]) {
      const entry = this.#running.get(id);
      if (!entry?.settled) continue;
      const again = poisoned.has(id)
        ? this.#worker.stopped(entry.effect, 'its outcome could not be recorded', false)
        : outcome;
      this.#kept.set(id, again);
      this.#offer(again);
    }
  }

  /**
   * Another host has gone on with the session: what an earlier runner here had, and nobody waits for any more, is late.
   * @param wanted the session's open effects.
   */
  dropLate(wanted: readonly WorkEffect[]): void {
    const ids = new Set(wanted.map(({ id }) => id));
    for (const id of this.#kept.keys()) {
      if (ids.has(id)) continue;
      this.#kept.delete(id);
      noteLate(this.#log, this.#sessionId, id);
    }
  }

  /** Ends everything at once: outcomes that come later are dropped and noted. Returns what was settled and not recorded (RUNNER-9). */
  close(): ReadonlyMap<string, Outcome> {
    this.#closed = true;
    for (const entry of this.#running.values()) {
      if (!entry.settled) entry.controller.abort(SESSION_LEFT);
      // A grace can be minutes long, and a sleep keeps its process alive.
      entry.grace?.abort();
    }
    return this.#kept;
  }

  #start(effect: WorkEffect): void {
    const entry: Running = {
      effect,
      controller: new AbortController(),
      settled: false,
      grace: null,
      isElsewhere: false,
    };
    this.#running.set(effect.id, entry);
    const kept = this.#kept.get(effect.id);
    if (kept) this.#settle(entry, kept);
    else if (effect.abort) this.#settle(entry, this.#worker.stopped(effect, effect.abort.reason, false));
    else void this.#perform(entry);
  }

  async #perform(entry: Running): Promise<void> {
    const { id, kind } = entry.effect;
    this.#log.debug({ session_id: this.#sessionId, effect_id: id, kind }, 'effect starts');
    let outcome: Outcome;
    try {
      outcome = await this.#worker.perform(entry.effect, entry.controller.signal, () => {
        entry.isElsewhere = true;
      });
    } catch (error) {
      // A worker never rejects: this is a broken invariant of ours, and the run ends over it.
      outcome = this.#worker.stopped(entry.effect, `it failed: ${(error as Error).message}`, false);
      if (!this.#closed) this.#broken(error as Error);
    }
    this.#settle(entry, outcome);
  }

  #stopIfAsked(entry: Running, effect: WorkEffect): void {
    if (!effect.abort || entry.grace || entry.settled) return;
    const { reason, graceMs } = effect.abort;
    const grace = new AbortController();
    entry.grace = grace;
    entry.controller.abort(reason);
    void this.#clock.sleep(graceMs, grace.signal).then(() => {
      if (!grace.signal.aborted) this.#settle(entry, this.#worker.stopped(effect, reason, true));
    });
  }

  #settle(entry: Running, outcome: Outcome): void {
    const { id, kind } = entry.effect;
    if (entry.settled || this.#closed || this.#running.get(id) !== entry) {
      const call =
        'callId' in entry.effect && entry.effect.callId !== undefined ? { call_id: entry.effect.callId } : {};
      noteLate(this.#log, this.#sessionId, id, { kind, ...call });
      entry.settled = true;
      return;
    }
    entry.settled = true;
    entry.grace?.abort();
    this.#kept.set(id, outcome);
    this.#offer(outcome);
  }
}

/** That a call was taken up is no answer to the order to stop it, which stands under the same id. */
function isOrderToStop({ kind }: WorkEffect): boolean {
  return kind === 'stop_call' || kind === 'stop_child';
}

/** Says that what became of an effect was not taken in: nobody waits for it, or another host has the session. */
export function noteLate(
  log: Log,
  sessionId: string,
  effectId: string,
  about: Readonly<Record<string, string>> = {},
): void {
  log.info({ session_id: sessionId, effect_id: effectId, ...about }, 'late outcome dropped');
}
