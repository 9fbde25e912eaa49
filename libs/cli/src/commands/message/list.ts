/** `cox message list`. */
import { findSession, sessionStatus, withBus } from '../../instance/mod.ts';
import { type CommandRun, EXIT } from '../../line/mod.ts';
import { pendingTable, standardStreams } from '../../terminal/mod.ts';

/** Lists the queued messages of a session, and the reminders in its prompts. */
export const run: CommandRun = (invocation) =>
  withBus(invocation, false, async (bus) => {
    const session = await findSession(bus.client, invocation.args[0] as string);
    const { pending, reminders } = await sessionStatus(bus, session);
    if (invocation.flags.on('json')) {
      for (const entry of pending) standardStreams.out(`${JSON.stringify({ session_id: session.id, ...entry })}\n`);
      for (const entry of reminders)
        standardStreams.out(`${JSON.stringify({ session_id: session.id, kind: 'reminder', ...entry })}\n`);
      return EXIT.ok;
    }
    if (pending.length === 0) standardStreams.err('no messages are queued\n');
    standardStreams.out(pendingTable({ pending, reminders }));
    return EXIT.ok;
  });
