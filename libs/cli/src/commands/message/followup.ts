/** `cox message followup`. */
import type { CommandRun } from '../../line/command-spec.ts';
import { inject } from '../../run/inject.ts';

/** Queues what is to be done next. */
export const run: CommandRun = (invocation) =>
  inject(invocation, 'follow-up', (session, text, { mode: _mode, ...options }) => session.followup(text, options));
