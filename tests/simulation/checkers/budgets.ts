/** Thresholds of budgets: each at most once, in order, and not before it is reached; nothing begins after the last. */
import type { Checker } from './check.ts';
import { eventsOf } from './check.ts';

/** See the top of the file. */
export const checkBudgets: Checker = (journal) => {
  const wrong: string[] = [];
  const told = new Map<string, number>();
  let isUsedUp = false;
  for (const { n, event } of eventsOf(journal)) {
    switch (event.type) {
      case 'prompt_received':
        told.clear();
        isUsedUp = false;
        break;
      case 'loop_checkpoint':
        // A daemon's jobs count each by itself.
        if (event.kind === 'daemon_idle_pre') told.clear();
        break;
      case 'budget_threshold': {
        const { budget, percent, used, limit, needed } = event;
        if (percent <= (told.get(budget) ?? 0)) wrong.push(`record ${n}: ${percent}% of ${budget} is told again`);
        if (needed === undefined && used < (limit * percent) / 100)
          wrong.push(`record ${n}: ${percent}% of ${budget} is told at ${used} of ${limit}`);
        told.set(budget, percent);
        isUsedUp ||= percent === 100;
        break;
      }
      case 'turn_start':
      case 'call_started':
        if (isUsedUp) wrong.push(`record ${n}: ${event.type} after a budget was used up`);
        break;
      default:
        break;
    }
  }
  return wrong;
};
