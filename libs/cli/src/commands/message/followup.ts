/** `cox message followup`. */
import type { CommandRun } from '../../line/mod.ts';
import { inject } from '../../run/mod.ts';

/** Queues a follow-up message. */
export const run: CommandRun = (invocation) =>
  inject(invocation, 'follow-up', (session, text, { mode: _mode, ...options }) => session.followup(text, options));
