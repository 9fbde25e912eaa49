/** `cox message remind`. */
import type { CommandRun } from '../../line/mod.ts';
import { inject } from '../../run/mod.ts';

const TURNS_MAX = 1_000_000;

/** Adds a reminder to a session's prompts. */
export const run: CommandRun = (invocation) => {
  const { flags } = invocation;
  const reminder = {
    tags: flags.inOrder(['tag']).map(({ value }) => value),
    ttlTurns: flags.whole('ttl-turns', { min: 1, max: TURNS_MAX }),
    preserveOnCompact: flags.on('preserve-on-compact'),
    propagate: flags.oneOf('propagate', ['session', 'all', 'none']),
    roleHint: flags.oneOf('role-hint', ['system', 'developer', 'user_block', 'ephemeral_cache']),
  };
  return inject(invocation, 'reminder', (session, text, options) => session.remind(text, { ...options, ...reminder }));
};
