/** `cox session suspend`. */
import type { SuspendRequest } from '@coxswain/client';
import { OnTimeout, type SuspensionRequestFields, suspensionRequestProblem } from '@coxswain/protocol';
import { type CommandRun, type Flags, readDuration, usageError } from '../../line/mod.ts';
import { acceptedAtMost, sendToSession } from '../../run/mod.ts';

/** Suspends a session. */
export const run: CommandRun = (invocation) => {
  const request = requestOf(invocation.flags);
  return sendToSession(invocation, (session, options) => session.suspend(request, acceptedAtMost(options)));
};

const FLAG_OF: Readonly<Record<string, string>> = {
  until: '--until',
  for_ms: '--for',
  on_timeout: '--on-timeout',
  input: '--input',
};

function requestOf(flags: Flags): SuspendRequest {
  const duration = flags.text('for');
  const forMs = duration === undefined ? undefined : readDuration(duration);
  if (forMs === null) throw usageError(`--for takes a duration such as 90s, 15m, 2h or 30d, not "${duration}"`);
  const fields: SuspensionRequestFields = {
    reason: flags.text('reason'),
    until: flags.text('until'),
    for_ms: forMs,
    signal: flags.text('signal'),
    on_timeout: flags.oneOf('on-timeout', OnTimeout.options),
    input: flags.text('input'),
  };
  const problem = suspensionRequestProblem(fields);
  if (problem) {
    const message = problem.message.replace(/\w+/g, (word) => FLAG_OF[word] ?? word);
    throw usageError(`${FLAG_OF[problem.field]}: ${message}`);
  }
  const { for_ms: _, on_timeout: onTimeout, ...others } = fields;
  return { ...others, forMs, onTimeout } as SuspendRequest;
}
