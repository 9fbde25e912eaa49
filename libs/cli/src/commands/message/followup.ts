/** `cox message followup`. */
import type { CommandRun } from '../../line/command-spec.ts';
import { inject } from '../../run/inject.ts';

/** Queues a follow-up message. */
export const run: CommandRun = (invocation) =>
  inject(invocation, 'follow-up', (session, text, { mode: _mode, ...options }) => session.followup(text, options));
