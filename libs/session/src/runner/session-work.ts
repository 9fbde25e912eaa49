/**
 * The work that the newest record of a session asks for: its effects, its timers and its remembered rules. One function
 * reconciles all three with the state of the machine, after each commit and after recovery (RUNNER-6).
 */
import type { StoredRule } from '@coxswain/protocol';
import {
  effectsOf,
  type SessionContext,
  type SessionState,
  type TimerEffect,
  timersOf,
  type WorkEffect,
} from '@coxswain/turn';
import type { EffectTable } from '../effects/effect-table.ts';
import type { LiveSession } from '../journal/load-session.ts';
import type { RetriedStore } from './retried-store.ts';
import type { RunnerOptions } from './runner-ports.ts';

/** The open effects of a session that need a host: all but timers, which the store keeps. */
export function workOf(state: SessionState): WorkEffect[] {
  return effectsOf(state).filter((effect): effect is WorkEffect => effect.kind !== 'timer');
}

/** Effects that a stopping host lets end. A model call is not among them, because the next owner can repeat it. */
const DRAINED: readonly WorkEffect['kind'][] = ['provision', 'call_tool', 'consult', 'check_stop', 'close_tools'];

/** Effects that ask a model. A quiescing runner starts none. */
const ASKS_MODEL: readonly WorkEffect['kind'][] = ['call_model', 'compact'];

/** The effects and stored items of one session. */
export class SessionWork {
  readonly effects: EffectTable;
  readonly #timers: RetriedStore<TimerEffect>;
  readonly #rules: RetriedStore<StoredRule> | undefined;
  readonly #options: Pick<RunnerOptions, 'mayBegin' | 'notedAgain'>;
  /** Whether there was work at the last reconciliation. */
  #hadWork = false;
  #isQuiescing = false;

  constructor(
    effects: EffectTable,
    timers: RetriedStore<TimerEffect>,
    rules: RetriedStore<StoredRule> | undefined,
    options: Pick<RunnerOptions, 'mayBegin' | 'notedAgain'>,
  ) {
    this.effects = effects;
    this.#timers = timers;
    this.#rules = rules;
    this.#options = options;
  }

  /** Whether work is in flight that a stopping host should let end. */
  get hasWorkToDrain(): boolean {
    return this.#unacknowledged > 0 || this.effects.keeps(DRAINED);
  }

  /** Whether no effect runs, and the stores outside the journal have acknowledged everything. */
  get isIdle(): boolean {
    return this.effects.running === 0 && this.#unacknowledged === 0;
  }

  /** Timers and rules that their stores have not acknowledged. They keep the session in memory. */
  get #unacknowledged(): number {
    return this.#timers.unacknowledged + (this.#rules?.unacknowledged ?? 0);
  }

  /** Starts no further model call. Calls that run or are recorded may end. */
  quiesce(): void {
    this.#isQuiescing = true;
  }

  /** Starts model calls again. Call {@link reconcile} after it. */
  resume(): void {
    this.#isQuiescing = false;
  }

  /** The session was loaded: its open work is known to the host's note already. */
  loaded(state: SessionState): void {
    this.#hadWork = workOf(state).length > 0;
  }

  /** Reconciles timers and rules with the newest record, and effects too if the transcript is loaded. */
  reconcile({ actor: { state }, n, transcript }: LiveSession): void {
    this.#reconcileTimers(timersOf(state));
    this.#reconcileRules(state.context.remembered);
    const work = workOf(state);
    // The host stores the note before the session's first record.
    if (work.length > 0 && !this.#hadWork && n > 1) this.#options.notedAgain();
    this.#hadWork = work.length > 0;
    if (!transcript) return;
    this.effects.reconcile(
      work,
      ({ kind }) => this.#options.mayBegin() && !(this.#isQuiescing && ASKS_MODEL.includes(kind)),
    );
  }

  /** Retries nothing more. {@link effects} are closed separately: their settled outcomes go to the next runner. */
  closeStores(): void {
    this.#timers.close();
    this.#rules?.close();
  }

  #reconcileTimers(wanted: readonly TimerEffect[]): void {
    this.#timers.retain((key) => wanted.some(({ id }) => id === key));
    for (const timer of wanted) this.#timers.add(timer.id, timer);
  }

  #reconcileRules(remembered: SessionContext['remembered']): void {
    for (const { revoked, ...rule } of remembered) {
      if (rule.scope !== 'persona') continue;
      this.#rules?.add(`${rule.id} ${revoked ? 'revoked' : 'holds'}`, { rule, ...(revoked ? { revoked } : {}) });
    }
  }
}
