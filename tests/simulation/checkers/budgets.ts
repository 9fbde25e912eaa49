/**
 * Budgets: each threshold of a run is told once, as soon as it is reached and not before; at 100 percent the run ends,
 * and nothing of it begins any more. All is counted again here: tokens and money from the answers, time from when records
 * were made; it stands still while the session is suspended or idles.
 */
import {
  costNanoUsd,
  type EventOf,
  type PinnedPrice,
  type Provision,
  type SessionEvent,
  type Usage,
  usdOf,
} from '@coxswain/protocol';
import type { Checker } from './check.ts';

/** See the top of the file. */
export const checkBudgets: Checker = ({ records }) => {
  const wrong: string[] = [];
  const run = new RunCount();
  let told = new Map<string, number>();
  let isUsedUp = false;
  let isEnding = true;
  for (const { n, at, events, state } of records) {
    const atMs = Date.parse(at);
    for (const event of events) {
      if (run.take(event, atMs)) told = new Map();
      if (event.type === 'persona_changed' && event.handoff) told = run.handedOver(event.provision, atMs, told);
      switch (event.type) {
        case 'prompt_received':
          [isUsedUp, isEnding] = [false, true];
          break;
        case 'agent_start':
          isEnding = event.fingerprints === null;
          break;
        case 'run_failed':
          isEnding = true;
          break;
        case 'control_outcome':
          if (event.control === 'cancel' && event.status === 'cancelled') isEnding = true;
          break;
        case 'budget_threshold':
          wrong.push(...falsely(n, event, run, atMs, told.get(event.budget) ?? 0));
          told.set(event.budget, event.percent);
          if (event.percent === 100) [isUsedUp, isEnding] = [true, true];
          break;
        case 'turn_start':
        case 'call_started':
        case 'compaction_started':
        case 'approval_requested':
        case 'suspended':
          if (isUsedUp) wrong.push(`record ${n}: ${event.type} after the budget was used up`);
          break;
        case 'agent_end':
          if (isUsedUp && !['budget_exceeded', 'error'].includes(event.stop_reason))
            wrong.push(`record ${n}: the run that has used up its budget ended with ${event.stop_reason}`);
          isEnding = true;
          break;
        default:
          break;
      }
    }
    // A run that is ending tells no more.
    const isOver = isEnding || (typeof state === 'object' && 'tearing_down' in state);
    if (!isOver) wrong.push(...untold(n, run, atMs, told));
  }
  return wrong;
};

type Amounts = { readonly tokens: number; readonly nano_usd: number; readonly wall_time_ms: number };
type Told = ReadonlyMap<string, number>;
const NOTHING: Amounts = { tokens: 0, nano_usd: 0, wall_time_ms: 0 };
const KEYS = ['tokens', 'nano_usd', 'wall_time_ms'] as const;

/** What a run has used, counted from its events. */
class RunCount {
  #budgets: Provision['budgets'];
  /** What the start allows the whole run, and what it had used when its persona took over. */
  #whole: Provision['run_limits'];
  #since: Amounts = NOTHING;
  #price: PinnedPrice | null = null;
  #tokens = 0;
  #nanoUsd = 0;
  /** Time that counts: before the clock was stopped last, and since when it runs. */
  #countedMs = 0;
  #sinceMs: number | null = null;
  #idleSinceMs: number | null = null;

  /** @returns whether everything is counted anew from here. */
  take(event: SessionEvent, atMs: number): boolean {
    switch (event.type) {
      case 'persona_changed':
        if (event.handoff) return false;
        [this.#budgets, this.#whole, this.#since] = [event.provision.budgets, undefined, NOTHING];
        return false;
      case 'prices_changed':
        this.#price = event.price;
        return false;
      case 'prompt_received':
        this.#anew();
        return true;
      case 'loop_checkpoint':
        if (event.kind === 'daemon_idle_post') this.#start(atMs);
        // A daemon counts from the last time that it idled.
        if (event.kind !== 'daemon_idle_pre') return false;
        this.#anew();
        this.#idleSinceMs = atMs;
        return true;
      case 'agent_start':
      case 'resumed':
        this.#start(atMs);
        return false;
      case 'turn_start':
        // It goes on without daemon_idle_post: something came while hooks were asked whether it may idle, or they denied its
        // suspension.
        if (this.#idleSinceMs !== null) this.#start(atMs);
        return false;
      case 'suspended':
        [this.#countedMs, this.#sinceMs] = [this.#elapsedMs(atMs), null];
        this.#idleSinceMs = null;
        return false;
      case 'message_complete':
      case 'context_overflowed':
      case 'compaction_done':
      case 'compaction_skipped':
        this.#spend(event.usage);
        return false;
      default:
        return false;
    }
  }

  /** Another persona has the run. @returns what counts as told from here on: of limits that go on, what was told. */
  handedOver(provision: Pick<Provision, 'budgets' | 'run_limits'>, atMs: number, told: Told): Map<string, number> {
    const before = this.bounds(atMs);
    [this.#budgets, this.#whole, this.#since] = [provision.budgets, provision.run_limits, this.#all(atMs)];
    const after = this.bounds(atMs);
    return new Map(
      [...told].filter(([budget]) => {
        const key = budget === 'usd' ? 'nano_usd' : (budget as keyof Amounts);
        return before[key]?.limit === after[key]?.limit && before[key]?.used === after[key]?.used;
      }),
    );
  }

  get thresholds(): readonly number[] {
    return this.#budgets?.thresholds ?? [];
  }

  /** Each limit that there is, and what is used of it, in whole units: of the persona's and the run's the one with less left. */
  bounds(atMs: number): { readonly [key in keyof Amounts]?: { readonly limit: number; readonly used: number } } {
    const all = this.#all(atMs);
    const bounds: Partial<Record<keyof Amounts, { limit: number; used: number }>> = {};
    for (const key of KEYS) {
      const own = this.#budgets?.limits[key];
      const whole = this.#whole?.[key];
      if (own === undefined) continue;
      const used = all[key] - this.#since[key];
      bounds[key] =
        whole !== undefined && whole - all[key] <= own - used ? { limit: whole, used: all[key] } : { limit: own, used };
    }
    return bounds;
  }

  #all(atMs: number): Amounts {
    return { tokens: this.#tokens, nano_usd: this.#nanoUsd, wall_time_ms: this.#elapsedMs(atMs) };
  }

  #spend(usage: Usage | undefined): void {
    if (!usage) return;
    this.#tokens += usage.input_tokens + usage.output_tokens;
    if (this.#price) this.#nanoUsd += costNanoUsd(this.#price, usage);
  }

  #anew(): void {
    [this.#tokens, this.#nanoUsd, this.#countedMs] = [0, 0, 0];
    this.#since = NOTHING;
    [this.#sinceMs, this.#idleSinceMs] = [null, null];
  }

  #start(atMs: number): void {
    this.#sinceMs ??= atMs;
    this.#idleSinceMs = null;
  }

  #elapsedMs(atMs: number): number {
    return this.#countedMs + (this.#sinceMs === null ? 0 : atMs - this.#sinceMs);
  }
}

function falsely(
  n: number,
  { budget, percent, used, limit, needed }: EventOf<'budget_threshold'>,
  run: RunCount,
  atMs: number,
  before: number,
): string[] {
  const wrong: string[] = [];
  const name = budget === 'usd' ? 'nano_usd' : budget;
  const shown = (amount: number | undefined) => (budget === 'usd' && amount !== undefined ? usdOf(amount) : amount);
  const bound = run.bounds(atMs)[name];
  const real = shown(bound?.used);
  const isUncovered = percent === 100 && needed !== undefined && used + needed > limit;
  if (percent <= before) wrong.push(`record ${n}: ${percent} % of ${budget} told after ${before} %`);
  if (used !== real) wrong.push(`record ${n}: ${used} of ${budget} used, and it were ${real}`);
  if (limit !== shown(bound?.limit)) wrong.push(`record ${n}: ${budget} has another limit than ${limit}`);
  // Money is shown as the nearest number that JSON has.
  if (used < (limit * percent) / 100 - 1e-12 && !isUncovered)
    wrong.push(`record ${n}: ${percent} % of ${budget} is told at ${used} of ${limit}`);
  return wrong;
}

function untold(n: number, run: RunCount, atMs: number, told: ReadonlyMap<string, number>): string[] {
  const bounds = run.bounds(atMs);
  return KEYS.flatMap((name) => {
    const bound = bounds[name];
    if (!bound) return [];
    const budget = name === 'nano_usd' ? 'usd' : name;
    const { limit, used } = bound;
    const reached = run.thresholds.findLast((percent) => used >= (limit * percent) / 100) ?? 0;
    return reached > (told.get(budget) ?? 0) ? [`record ${n}: ${reached} % of ${budget} is reached and not told`] : [];
  });
}
