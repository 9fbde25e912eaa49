/** The usage of a session, for people. */
import type { RunUsage, UsageReport } from '@coxswain/client';
import { counted } from './counted.ts';
import { dollars, endState, tokens } from './event-lines.ts';
import { table } from './table.ts';

/**
 * Formats the report as a table: one row for each run, one for each persona if there are several, and one for the
 * totals.
 */
export function usageTable({ runs, personas, usage, costUsd }: UsageReport): string {
  const line = (name: string, used: Pick<RunUsage, 'usage' | 'costUsd'>, ...about: string[]) => [
    name,
    `${tokens(used.usage.inputTokens)} in`,
    `${tokens(used.usage.cachedInputTokens ?? 0)} cached`,
    `${tokens(used.usage.outputTokens)} out`,
    used.costUsd === null ? 'unknown price' : dollars(used.costUsd),
    ...about,
  ];
  const isShared = personas.length > 1;
  const turns = (count: number) => counted(count, 'turn');
  const turnsOn = (one: Pick<RunUsage, 'turns' | 'model'>) => `${turns(one.turns)} on ${one.model ?? 'no model'}`;
  const rows = runs.map((one) =>
    line(
      `run ${one.run}`,
      one,
      isShared ? turns(one.turns) : turnsOn(one),
      one.stopReason === null ? 'in progress' : endState(one.stopReason),
    ),
  );
  const shared = isShared ? personas.map((one) => line(one.persona, one, turnsOn(one))) : [];
  return table([...rows, ...shared, line('all', { usage, costUsd })]);
}
