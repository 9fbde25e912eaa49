/** `cox remind`. */
import type { CommandRun } from '../line/command-spec.ts';
import { inject } from '../run/inject.ts';

/** Reminds a session. */
export const run: CommandRun = (invocation) =>
  inject(invocation, 'reminder', (session, text, options) => session.remind(text, options));
