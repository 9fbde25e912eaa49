/** `cox pending`. */
import { summarizeArgs } from '@coxswain/client';
import { withBus } from '../instance/open-bus.ts';
import { findSession } from '../instance/resolve-session.ts';
import { sessionStatus } from '../instance/session-status.ts';
import { EXIT } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { standardStreams } from '../terminal/streams.ts';
import { table } from '../terminal/table.ts';

/** Lists what a session has accepted and not yet delivered. */
export const run: CommandRun = (invocation) =>
  withBus(invocation, false, async (bus) => {
    const session = await findSession(bus.client, invocation.args[0] as string);
    const { pending } = await sessionStatus(bus, session);
    if (invocation.flags.on('json')) {
      for (const entry of pending) standardStreams.out(`${JSON.stringify({ session_id: session.id, ...entry })}\n`);
    } else if (pending.length === 0) standardStreams.err('nothing is pending\n');
    else {
      const rows = pending.map(({ command_id, kind, mode, body }) => [
        command_id,
        kind,
        mode ?? '',
        // A line for people; --json has it whole.
        summarizeArgs(body),
      ]);
      standardStreams.out(table(rows));
    }
    return EXIT.ok;
  });
