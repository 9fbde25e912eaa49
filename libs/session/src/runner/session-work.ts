/**
 * What the newest record of a session asks for: work (effects that a host performs), timers and remembered rules.
 * {@link SessionWork} reconciles all three with the state of the machine, after each append and on each wake (RUNNER-6,
 * session-runner.ts). {@link EffectTable} starts each effect once, and aborts it when the session no longer needs it.
 * It keeps the outcome until a record with it is acknowledged (RUNNER-9, session-runner.ts). After a claim it starts
 * the open effects in the order of `effectsOf` (core/effects.ts in libs/turn). `sendCall` (run-tool-call.ts) decides about a
 * call that may have run; if the session's tools cannot be reopened, `SessionWorker` (session-worker.ts) ends the call as
 * `interrupted` before that. `decideOwned` (runs/owners.ts in libs/turn) limits the restarts of a model call or compaction.
 */
import type { Clock, Log } from '@coxswain/ports';
import { type Outcome, SESSION_LEFT, type StoredRule } from '@coxswain/protocol';
import {
  awaitedTimers,
  effectsOf,
  type SessionContext,
  type SessionState,
  type TimerEffect,
  type WorkEffect,
} from '@coxswain/turn';
import type { EffectWorker } from '../effects/session-worker.ts';
import { stoppedOutcome } from '../effects/stopped-outcome.ts';
import type { LiveSession } from '../journal/load-session.ts';
import type { RunnerOptions } from './runner-ports.ts';
import type { StoreWrites } from './timer-and-rule-writes.ts';

/** The open effects of a session that need a host: all but timers, which the store keeps. */
export function workOf(state: SessionState): WorkEffect[] {
  return effectsOf(state).filter((effect): effect is WorkEffect => effect.kind !== 'timer');
}

/**
 * Effects that a stopping host lets end. The next owner can repeat all others: model calls, compactions, hand-offs,
 * orders to stop a call, and commands and notices with fixed ids.
 */
const KINDS_TO_DRAIN: readonly WorkEffect['kind'][] = [
  'provision',
  'call_tool',
  'consult',
  'check_stop',
  'close_tools',
];

/** Effects that ask a model. A quiescing runner starts none. */
const ASKS_MODEL: readonly WorkEffect['kind'][] = ['call_model', 'compact'];

/** The effects, timers and remembered rules of one session. */
export class SessionWork {
  readonly effects: EffectTable;
  readonly #timers: StoreWrites<TimerEffect>;
  readonly #rules: StoreWrites<StoredRule> | undefined;
  readonly #options: Pick<RunnerOptions, 'mayStartEffects' | 'storeNoteAgain'>;
  /** Whether there was work at the last reconciliation. */
  #hadWork = false;
  /**
   * Whether an effect of {@link KINDS_TO_DRAIN} was not started by the last reconciliation: the host has no lease
   * (`mayStartEffects`).
   */
  #hasDeferredEffect = false;
  #isQuiescing = false;

  constructor(
    effects: EffectTable,
    timers: StoreWrites<TimerEffect>,
    rules: StoreWrites<StoredRule> | undefined,
    options: Pick<RunnerOptions, 'mayStartEffects' | 'storeNoteAgain'>,
  ) {
    this.effects = effects;
    this.#timers = timers;
    this.#rules = rules;
    this.#options = options;
  }

  /**
   * Whether a stopping host should wait for work of this session. That is any of these:
   * - a timer or rule that its store has not acknowledged
   * - a running effect of {@link KINDS_TO_DRAIN}; not one that another process has taken, unless it is being stopped
   * - an effect of {@link KINDS_TO_DRAIN} that is recorded and has not started, because this host has no lease: the next
   *   owner could not know that it has not started
   */
  get hasWorkToDrain(): boolean {
    return this.#unacknowledged > 0 || this.#hasDeferredEffect || this.effects.mustEnd(KINDS_TO_DRAIN);
  }

  /** Whether no effect runs, and the stores outside the journal have acknowledged everything. */
  get isIdle(): boolean {
    return this.effects.running === 0 && this.#unacknowledged === 0;
  }

  /** Timers and rules that their stores have not acknowledged. They keep the session in memory. */
  get #unacknowledged(): number {
    return this.#timers.unacknowledged + (this.#rules?.unacknowledged ?? 0);
  }

  /**
   * Starts no further model call and no compaction. Tool calls that run, or that are recorded and have not started, still run
   * to their end.
   */
  quiesce(): void {
    this.#isQuiescing = true;
  }

  /** Starts model calls and compactions again. Call {@link reconcile} after it. */
  resume(): void {
    this.#isQuiescing = false;
  }

  /** The session was loaded: the host's note covers its open work already. */
  loaded(state: SessionState): void {
    this.#hadWork = workOf(state).length > 0;
  }

  /**
   * Reconciles timers and rules with the newest record, and effects if the transcript is loaded. If the session has
   * work again, the host stores its note once more.
   */
  reconcile({ actor: { state }, n, transcript }: LiveSession): void {
    this.#reconcileTimers(awaitedTimers(state));
    this.#reconcileRules(state.context.remembered);
    const work = workOf(state);
    // While the session was idle, another host may have removed its note (session-notes.ts). Record 1 follows the first note.
    if (work.length > 0 && !this.#hadWork && n > 1) this.#options.storeNoteAgain();
    this.#hadWork = work.length > 0;
    if (!transcript) return;
    this.effects.reconcile(
      work,
      ({ kind }) => this.#options.mayStartEffects() && !(this.#isQuiescing && ASKS_MODEL.includes(kind)),
    );
    this.#hasDeferredEffect = work.some(({ id, kind }) => KINDS_TO_DRAIN.includes(kind) && !this.effects.has(id));
  }

  /**
   * Ends the retries of timers and rules. {@link effects} are closed separately: their settled outcomes go to the next runner.
   */
  closeWrites(): void {
    this.#timers.close();
    this.#rules?.close();
  }

  #reconcileTimers(wanted: readonly TimerEffect[]): void {
    this.#timers.forgetExcept((key) => wanted.some(({ id }) => id === key));
    for (const timer of wanted) this.#timers.add(timer.id, timer);
  }

  #reconcileRules(remembered: SessionContext['remembered']): void {
    for (const { revoked, ...rule } of remembered) {
      if (rule.scope !== 'persona') continue;
      this.#rules?.add(`${rule.id} ${revoked ? 'revoked' : 'holds'}`, { rule, ...(revoked ? { revoked } : {}) });
    }
  }
}

interface StartedEffect {
  readonly effect: WorkEffect;
  readonly controller: AbortController;
  /** Its outcome was offered to the session, or is no longer wanted. */
  settled: boolean;
  /** Ends the grace period after an abort. */
  grace: AbortController | null;
  /** Another process has the work, and the session's next owner can get the outcome. */
  isElsewhere: boolean;
}

/** The table of one session's effects. */
export class EffectTable {
  /** Effects that were started and are still wanted, settled ones too. */
  readonly #started = new Map<string, StartedEffect>();
  /** Settled outcomes that no record holds yet (RUNNER-9, session-runner.ts). */
  readonly #outcomes: Map<string, Outcome>;
  readonly #sessionId: string;
  readonly #worker: EffectWorker;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #offer: (outcome: Outcome) => void;
  readonly #broken: (error: Error) => void;
  #closed = false;

  /**
   * @param sessionId for the log.
   * @param to `offer` takes each settled outcome; `broken` takes the error of a worker that rejects.
   * @param carried outcomes of an earlier runner of the session that no record holds yet.
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
    this.#outcomes = new Map(carried);
  }

  /** The number of effects in progress. */
  get running(): number {
    let count = 0;
    for (const { settled } of this.#started.values()) if (!settled) count++;
    return count;
  }

  /** Whether an effect was started and is still wanted. */
  has(id: string): boolean {
    return this.#started.has(id);
  }

  /**
   * Whether an effect of these kinds must end before the runner leaves the session. Work in another process need not, unless
   * it is being stopped.
   */
  mustEnd(kinds: readonly WorkEffect['kind'][]): boolean {
    for (const { settled, effect, isElsewhere, grace } of this.#started.values())
      if (!settled && kinds.includes(effect.kind) && !(isElsewhere && grace === null)) return true;
    return false;
  }

  /**
   * Starts missing effects, as far as they may start. Passes abort orders on to started ones. Aborts unwanted ones, and drops
   * their outcomes. For the callers see RUNNER-6 (session-runner.ts).
   * @param mayStart whether an effect may start. Not asked for one that has an abort order or a kept outcome.
   */
  reconcile(wanted: readonly WorkEffect[], mayStart: (effect: WorkEffect) => boolean): void {
    if (this.#closed) return;
    const ids = new Set(wanted.map((effect) => effect.id));
    for (const [id, entry] of this.#started) {
      if (ids.has(id)) continue;
      // A settled effect needs no abort, which would create an error with a stack trace.
      if (!entry.settled) entry.controller.abort();
      entry.grace?.abort();
      this.#started.delete(id);
    }
    for (const id of this.#outcomes.keys()) if (!ids.has(id)) this.#outcomes.delete(id);
    for (const effect of wanted) {
      let entry = this.#started.get(effect.id);
      // The order to stop a call has the effect id of the call. It replaces a call that another process has accepted.
      if (entry && entry.effect.kind !== effect.kind) {
        entry.settled = true;
        entry.grace?.abort();
        this.#started.delete(effect.id);
        this.#outcomes.delete(effect.id);
        entry = undefined;
      }
      if (this.#outcomes.get(effect.id)?.type === 'call_accepted' && isOrderToStop(effect))
        this.#outcomes.delete(effect.id);
      if (entry) this.#stopIfAsked(entry, effect);
      else if (effect.abort || this.#outcomes.has(effect.id) || mayStart(effect)) this.#start(effect);
    }
  }

  /**
   * Offers settled outcomes again after a reload (RUNNER-9, session-runner.ts). An outcome that broke the machine is
   * replaced by one that says that the effect was stopped, so that the run can end.
   * @param poisoned effects whose outcomes broke the machine.
   */
  offerAgain(poisoned: ReadonlySet<string>): void {
    for (const [id, outcome] of [...this.#outcomes]) {
      const entry = this.#started.get(id);
      if (!entry?.settled) continue;
      const again = poisoned.has(id)
        ? stoppedOutcome(entry.effect, 'its outcome could not be recorded', false)
        : outcome;
      this.#outcomes.set(id, again);
      this.#offer(again);
    }
  }

  /**
   * Drops and logs outcomes without an open effect: another host has owned the session since.
   * @param wanted the session's open effects.
   */
  dropLate(wanted: readonly WorkEffect[]): void {
    const ids = new Set(wanted.map(({ id }) => id));
    for (const id of this.#outcomes.keys()) {
      if (ids.has(id)) continue;
      this.#outcomes.delete(id);
      logLateOutcome(this.#log, this.#sessionId, id);
    }
  }

  /**
   * Aborts all effects. Later outcomes are dropped and logged.
   * @returns settled outcomes that no record holds (RUNNER-9, session-runner.ts).
   */
  close(): ReadonlyMap<string, Outcome> {
    this.#closed = true;
    for (const entry of this.#started.values()) {
      if (!entry.settled) entry.controller.abort(SESSION_LEFT);
      // A grace period can take minutes, and its timer keeps the process alive.
      entry.grace?.abort();
    }
    return this.#outcomes;
  }

  #start(effect: WorkEffect): void {
    const entry: StartedEffect = {
      effect,
      controller: new AbortController(),
      settled: false,
      grace: null,
      isElsewhere: false,
    };
    this.#started.set(effect.id, entry);
    const kept = this.#outcomes.get(effect.id);
    if (kept) this.#settle(entry, kept);
    else if (effect.abort && !this.#worker.mayHaveRun(effect))
      this.#settle(entry, stoppedOutcome(effect, effect.abort.reason, false));
    else {
      void this.#perform(entry);
      // A worker may run the call for an earlier owner, whose order to stop it may be lost.
      this.#stopIfAsked(entry, effect);
    }
  }

  async #perform(entry: StartedEffect): Promise<void> {
    const { id, kind } = entry.effect;
    this.#log.debug({ session_id: this.#sessionId, effect_id: id, kind }, 'effect starts');
    let outcome: Outcome;
    try {
      outcome = await this.#worker.perform(entry.effect, entry.controller.signal, () => {
        entry.isElsewhere = true;
      });
    } catch (error) {
      // A worker never rejects: this is a broken invariant, and it ends the run.
      outcome = stoppedOutcome(entry.effect, `it failed: ${(error as Error).message}`, false);
      if (!this.#closed) this.#broken(error as Error);
    }
    this.#settle(entry, outcome);
  }

  #stopIfAsked(entry: StartedEffect, effect: WorkEffect): void {
    if (!effect.abort || entry.grace || entry.settled) return;
    const { reason, graceMs } = effect.abort;
    const grace = new AbortController();
    entry.grace = grace;
    entry.controller.abort(reason);
    void this.#clock.sleep(graceMs, grace.signal).then(() => {
      if (!grace.signal.aborted) this.#settle(entry, stoppedOutcome(effect, reason, true));
    });
  }

  #settle(entry: StartedEffect, outcome: Outcome): void {
    const { id, kind } = entry.effect;
    if (entry.settled || this.#closed || this.#started.get(id) !== entry) {
      const call =
        'callId' in entry.effect && entry.effect.callId !== undefined ? { call_id: entry.effect.callId } : {};
      logLateOutcome(this.#log, this.#sessionId, id, { kind, ...call });
      entry.settled = true;
      return;
    }
    entry.settled = true;
    entry.grace?.abort();
    this.#outcomes.set(id, outcome);
    this.#offer(outcome);
  }
}

/** Whether an effect is the order to stop a call. It has the effect id of the call, but `call_accepted` does not answer it. */
function isOrderToStop({ kind }: WorkEffect): boolean {
  return kind === 'stop_call' || kind === 'stop_child';
}

/** Logs an outcome that is dropped: its effect is no longer open, or the runner has left the session. */
export function logLateOutcome(
  log: Log,
  sessionId: string,
  effectId: string,
  about: Readonly<Record<string, string>> = {},
): void {
  log.info({ session_id: sessionId, effect_id: effectId, ...about }, 'late outcome dropped');
}
