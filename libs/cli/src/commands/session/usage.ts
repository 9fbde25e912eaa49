/** `cox session usage`. */
import { type RunUsage, UsageCollector, type UsageReport } from '@coxswain/client';
import { withBus } from '../../instance/open-bus.ts';
import { findSession } from '../../instance/resolve-session.ts';
import { EXIT } from '../../line/cli-error.ts';
import type { CommandRun } from '../../line/command-spec.ts';
import { counted } from '../../terminal/counted.ts';
import { dollars, endState, tokens } from '../../terminal/event-lines.ts';
import { standardStreams } from '../../terminal/streams.ts';
import { table } from '../../terminal/table.ts';

/** Shows the usage of a session for each run. With several personas, also shows it for each persona. */
export const run: CommandRun = (invocation) =>
  withBus(invocation, false, async (bus) => {
    const session = await findSession(bus.client, invocation.args[0] as string);
    const collector = new UsageCollector();
    for await (const { record } of session.journal()) collector.add(record);
    const { report, wireReport } = collector;
    const json = JSON.stringify({ session_id: session.id, ...wireReport });
    standardStreams.out(invocation.flags.on('json') ? `${json}\n` : usageTable(report));
    return EXIT.ok;
  });

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
