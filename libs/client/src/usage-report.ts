/** What a session has used, run by run, put together from its records. */
import type { JournalRecord, StopReason, Usage } from '@coxswain/protocol';

/** What one run has used. */
export interface RunUsage {
  readonly run: number;
  readonly persona: string | null;
  readonly model: string | null;
  readonly turns: number;
  readonly usage: Usage;
  /** USD; null where the price of anything in it is not known. */
  readonly cost_usd: number | null;
  /** Null while it goes on. */
  readonly stop_reason: StopReason | null;
}

/** What a session has used. */
export interface UsageReport {
  readonly runs: readonly RunUsage[];
  readonly usage: Usage;
  readonly cost_usd: number | null;
}

/** Takes a session's records in order. */
export class UsageCollector {
  readonly #runs: RunUsage[] = [];
  /** Nano-USD by run: sums of fractions of a dollar drift, whole numbers do not. */
  readonly #costs: (number | null)[] = [];

  /** Takes one record in. */
  add(record: JournalRecord): void {
    for (const event of record.events) {
      const last = this.#runs.length - 1;
      const run = this.#runs[last];
      if (event.type === 'agent_start') {
        const { persona, model } = event;
        this.#runs.push({
          run: event.run,
          persona,
          model,
          turns: 0,
          usage: NOTHING,
          cost_usd: null,
          stop_reason: null,
        });
        this.#costs.push(0);
      } else if (event.type === 'turn_end' && run) {
        this.#runs[last] = { ...run, turns: event.turn, usage: sum([run.usage, event.usage]) };
        const cost = this.#costs[last] ?? null;
        this.#costs[last] = cost === null || event.cost_usd === undefined ? null : cost + nano(event.cost_usd);
      } else if (event.type === 'agent_end' && run) {
        this.#runs[last] = { ...run, turns: event.turns, stop_reason: event.stop_reason };
      }
    }
  }

  /** What has been used so far. A turn that is open counts once it is over. */
  get report(): UsageReport {
    const runs = this.#runs.map((run, index) => ({ ...run, cost_usd: usd(this.#costs[index] ?? null) }));
    const total = this.#costs.reduce((all, cost) => (all === null || cost === null ? null : all + cost), 0);
    return { runs, usage: sum(runs.map(({ usage }) => usage)), cost_usd: usd(total) };
  }
}

const NOTHING: Usage = { input_tokens: 0, output_tokens: 0 };
const nano = (sumUsd: number): number => Math.round(sumUsd * 1e9);
const usd = (nanoUsd: number | null): number | null => (nanoUsd === null ? null : nanoUsd / 1e9);

function sum(usages: readonly Usage[]): Usage {
  const total = { ...NOTHING };
  for (const usage of usages) {
    for (const key of Object.keys(usage) as (keyof Usage)[]) total[key] = (total[key] ?? 0) + (usage[key] ?? 0);
  }
  return total;
}
