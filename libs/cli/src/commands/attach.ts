/** `cox attach`. */
import { findSession, withBus } from '../instance/mod.ts';
import type { CommandRun } from '../line/mod.ts';
import { joinSession } from '../run/mod.ts';
import { namedSteeringFile } from '../steering-file/mod.ts';

/** Joins a session. If no instance runs, one is started, and it continues the session. */
export const run: CommandRun = (invocation) => {
  const from = invocation.flags.whole('from', { min: 1, max: Number.MAX_SAFE_INTEGER });
  namedSteeringFile(invocation);
  let shown = 0;
  return withBus(invocation, true, async (bus) => {
    const session = await findSession(bus.client, invocation.args[0] as string);
    const part = shown === 0 ? { from } : { from: shown + 1, after: shown + 1 };
    return joinSession(invocation, bus, session, {
      ...part,
      onShown: (n) => {
        shown = n;
      },
    });
  });
};
