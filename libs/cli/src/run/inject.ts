/** Sends steering messages, reminders and follow-ups from the command line. */
import type { InjectOptions, SentCommand, Session } from '@coxswain/client';
import { type ExitCode, type Invocation, usageError } from '../line/mod.ts';
import { textOrInput } from './read-input.ts';
import { sendToSession } from './send-to-session.ts';

const MODES = ['finish_step', 'interrupt_immediate', 'audit_only', 'steer', 'interrupt'] as const;

/**
 * Sends a text; `-` reads it from standard input. @throws CliError with exit code 2 for contradicting flags or an empty
 * text.
 */
export async function inject(
  invocation: Invocation,
  what: string,
  send: (session: Session, text: string, options: InjectOptions) => Promise<SentCommand>,
): Promise<ExitCode> {
  const mode = invocation.flags.oneOf('mode', MODES);
  const preempt = invocation.flags.on('preempt') || undefined;
  if (preempt && mode !== undefined && mode !== 'interrupt' && mode !== 'interrupt_immediate')
    throw usageError(`--preempt goes with --mode interrupt_immediate, not ${mode}`);
  const dedupeKey = invocation.flags.text('dedupe-key');
  const text = await textOrInput(invocation.args[1] as string, `the ${what}`);
  const when = preempt ? { preempt } : { mode };
  return sendToSession(invocation, (session, options) => send(session, text, { ...options, ...when, dedupeKey }));
}
