/** `cox approvals`. */
import { summarizeArgs, topState } from '@coxswain/client';
import { withBus } from '../instance/open-bus.ts';
import { sessionStatus } from '../instance/session-status.ts';
import { EXIT } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { standardStreams } from '../terminal/streams.ts';
import { table } from '../terminal/table.ts';

/** Lists every approval that is waited for, across sessions. */
export const run: CommandRun = (invocation) =>
  withBus(invocation, false, async (bus) => {
    const parked = (await bus.client.sessions()).filter(
      ({ state }) => topState(state) === 'function_awaiting_approval',
    );
    const rows: string[][] = [];
    for (const { session_id } of parked) {
      const { approvals } = await sessionStatus(bus, bus.client.session(session_id));
      for (const approval of approvals) {
        if (invocation.flags.on('json')) standardStreams.out(`${JSON.stringify({ session_id, ...approval })}\n`);
        else {
          const asked = approval.question === undefined ? '' : 'a crash left open whether it ran';
          rows.push([session_id, approval.call_id, approval.tool, summarizeArgs(approval.args), asked]);
        }
      }
    }
    if (rows.length > 0) standardStreams.out(table(rows));
    else if (!invocation.flags.on('json')) standardStreams.err('nothing waits for an approval\n');
    return EXIT.ok;
  });
