/** Tools for what is said beside steering, and for what has not been delivered yet: remind, revoke, replace, signal. */
import { COMMAND_BODIES } from '@coxswain/protocol';
import * as z from 'zod';
import { mcpTool } from '../mcp-tool.ts';
import { ToolRefusal } from '../tool-trouble.ts';
import { existingSession } from './existing-session.ts';
import { sending, taken } from './taken-command.ts';
import { OfSession, SteerMode, Taken } from './tool-inputs.ts';

const { remind: remindBody, revoke: revokeBody, replace: replaceBody, signal: signalBody } = COMMAND_BODIES;
const PendingId = revokeBody.shape.command_id.describe(
  'The command that brought it: command_id of steer, remind or follow_up, or of an entry of pending in get_session.',
);

/** `remind`. */
export const remind = mcpTool({
  name: 'remind',
  title: 'Remind a session',
  description:
    'Shows a session’s model something that nobody has said: a <system-reminder>, for good or for so many turns, beside what its ' +
    'user says. To tell it what to do, steer it.',
  scope: 'steer',
  input: z.strictObject({
    ...OfSession,
    body: remindBody.shape.body.describe('What it is to keep in mind.'),
    mode: SteerMode,
    preempt: z
      .boolean()
      .default(false)
      .describe('With interrupt_immediate: also ends the answer that streams and the calls that run.'),
    dedupe_key: remindBody.shape.dedupe_key.describe('A reminder under the same key makes way for this one.'),
    ttl_turns: remindBody.shape.ttl_turns.describe('How many turns show it. Without it: all, until it is revoked.'),
    preserve_on_compact: remindBody.shape.preserve_on_compact.describe('It outlives the compaction of its transcript.'),
    propagate: remindBody.shape.propagate.describe(
      'session (default): this one and those that it starts itself. all: those below them, too. none: this one alone.',
    ),
  }),
  output: Taken,
  run: async ({ session_id, body, preempt, mode, ...reminder }, use) => {
    if (preempt && mode !== 'interrupt_immediate')
      throw new ToolRefusal('invalid_field', 'preempt: goes with the mode interrupt_immediate only', 'preempt');
    const { session } = await existingSession(use.client, session_id);
    const { dedupe_key: dedupeKey, ttl_turns: ttlTurns, preserve_on_compact: preserveOnCompact, propagate } = reminder;
    const when = preempt ? { preempt } : { mode };
    const about = { ...when, dedupeKey, ttlTurns, preserveOnCompact, propagate };
    return taken(session, await session.remind(body, { ...about, ...sending(use) }));
  },
});

/** `revoke`. */
export const revoke = mcpTool({
  name: 'revoke',
  title: 'Take back what waits',
  description:
    'Takes back a steer, a follow-up or a reminder that has not been delivered yet, and a reminder that is shown. What a model has ' +
    'been told cannot be taken back: already_delivered.',
  scope: 'steer',
  idempotent: true,
  input: z.strictObject({ ...OfSession, command_id: PendingId }),
  output: Taken,
  run: async ({ session_id, command_id }, use) => {
    const { session } = await existingSession(use.client, session_id);
    return taken(session, await session.revoke(command_id, sending(use)));
  },
});

/** `replace`. */
export const replace = mcpTool({
  name: 'replace',
  title: 'Say it otherwise',
  description: 'Gives a steer, a follow-up or a reminder that has not been delivered yet another text, in its place.',
  scope: 'steer',
  input: z.strictObject({
    ...OfSession,
    command_id: PendingId,
    body: replaceBody.shape.body.describe('What it is to say.'),
  }),
  output: Taken,
  run: async ({ session_id, command_id, body }, use) => {
    const { session } = await existingSession(use.client, session_id);
    return taken(session, await session.replace(command_id, body, sending(use)));
  },
});

/** `signal`. */
export const signal = mcpTool({
  name: 'signal',
  title: 'Signal a session',
  description:
    'Gives a session a signal by its name, with data: it wakes one that is suspended until that signal, and is kept for one that has ' +
    'yet to wait for it. get_session says what a session waits for.',
  scope: 'run',
  input: z.strictObject({
    ...OfSession,
    name: signalBody.shape.name.describe('The signal’s name.'),
    data: signalBody.shape.data.describe('Any JSON; the session’s model is told it.'),
  }),
  output: Taken,
  run: async ({ session_id, name, data }, use) => {
    const { session } = await existingSession(use.client, session_id);
    return taken(session, await session.signal(name, data, sending(use)));
  },
});
