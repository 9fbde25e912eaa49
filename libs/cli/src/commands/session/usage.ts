/** `cox session usage`. */
import { UsageCollector } from '@coxswain/client';
import { findSession, withBus } from '../../instance/mod.ts';
import { type CommandRun, EXIT } from '../../line/mod.ts';
import { standardStreams, usageTable } from '../../terminal/mod.ts';

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
