/**
 * Budgets: each threshold of a run is told once, as soon as it is reached and not before; at 100 percent the run ends,
 * and nothing of it begins any more. Tokens and money are counted again here, from the answers alone.
 */
import { costNanoUsd, type PinnedPrice, type Provision, type Usage, usdOf } from '@coxswain/protocol';
import type { Checker } from './check.ts';

type Pinned = { readonly budgets: Provision['budgets']; readonly price: PinnedPrice | null };

/** See the top of the file. */
export const checkBudgets: Checker = ({ records }) => {
  const wrong: string[] = [];
  let pinned: Pinned = { budgets: undefined, price: null };
  let [tokens, nanoUsd] = [0, 0];
  let told = new Map<string, number>();
  let isUsedUp = false;
  let isEnding = true;
  const count = (usage: Usage | undefined) => {
    if (!usage) return;
    tokens += usage.input_tokens + usage.output_tokens;
    nanoUsd += pinned.price ? costNanoUsd(pinned.price, usage) : 0;
  };
  const anew = () => {
    [tokens, nanoUsd] = [0, 0];
    told = new Map();
  };
  for (const { n, events } of records) {
    for (const event of events) {
      switch (event.type) {
        case 'prompt_received':
          anew();
          [isUsedUp, isEnding] = [false, true];
          break;
        case 'persona_changed':
          pinned = { ...pinned, budgets: event.provision.budgets };
          break;
        case 'prices_changed':
          pinned = { ...pinned, price: event.price };
          break;
        case 'agent_start':
          isEnding = event.fingerprints === null;
          break;
        case 'loop_checkpoint':
          // A daemon counts from the last time that it idled.
          if (event.kind === 'daemon_idle_pre') anew();
          break;
        case 'message_complete':
        case 'context_overflowed':
        case 'compaction_done':
        case 'compaction_skipped':
          count(event.usage);
          break;
        case 'run_failed':
          isEnding = true;
          break;
        case 'control_outcome':
          if (event.control === 'cancel' && event.status === 'cancelled') isEnding = true;
          break;
        case 'budget_threshold': {
          const { budget, percent, used, limit, needed } = event;
          const before = told.get(budget) ?? 0;
          if (percent <= before) wrong.push(`record ${n}: ${percent} % of ${budget} told after ${before} %`);
          told.set(budget, percent);
          const name = budget === 'usd' ? 'nano_usd' : budget;
          const real = { tokens, usd: usdOf(nanoUsd), wall_time_ms: used }[budget];
          const allowed = pinned.budgets?.limits[name];
          if (used !== real) wrong.push(`record ${n}: ${used} of ${budget} used, and it were ${real}`);
          if (allowed === undefined || limit !== (budget === 'usd' ? usdOf(allowed) : allowed))
            wrong.push(`record ${n}: ${budget} has another limit than ${limit}`);
          if (
            used < (limit * percent) / 100 - 1e-12 &&
            !(percent === 100 && needed !== undefined && used + needed > limit)
          )
            wrong.push(`record ${n}: ${percent} % of ${budget} is told at ${used} of ${limit}`);
          if (percent === 100) [isUsedUp, isEnding] = [true, true];
          break;
        }
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
    if (!isEnding) wrong.push(...untold(n, pinned, { tokens, nano_usd: nanoUsd }, told));
  }
  return wrong;
};

function untold(
  n: number,
  { budgets }: Pinned,
  used: { readonly tokens: number; readonly nano_usd: number },
  told: ReadonlyMap<string, number>,
): string[] {
  if (!budgets) return [];
  return (['tokens', 'nano_usd'] as const).flatMap((name) => {
    const limit = budgets.limits[name];
    if (limit === undefined) return [];
    const budget = name === 'nano_usd' ? 'usd' : name;
    const reached = budgets.thresholds.findLast((percent) => used[name] >= (limit * percent) / 100) ?? 0;
    return reached > (told.get(budget) ?? 0) ? [`record ${n}: ${reached} % of ${budget} is reached and not told`] : [];
  });
}
