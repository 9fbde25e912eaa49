/** `cox session resume`. */

import { CliError, type CommandRun, EXIT } from '../../line/mod.ts';
import { acceptedAtMost, sendToSession } from '../../run/mod.ts';

/** Resumes a suspended session. */
export const run: CommandRun = (invocation) =>
  sendToSession(invocation, async (session, options) => {
    try {
      return await session.resume(acceptedAtMost(options));
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (code !== 'not_running' && code !== 'not_suspended') throw error;
      const hint = `the run has ended; to continue the session: cox run "…" --session ${session.id}`;
      throw new CliError(EXIT.error, code, `${code}: ${code === 'not_running' ? hint : (error as Error).message}`);
    }
  });
