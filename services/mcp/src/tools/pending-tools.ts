/** Tools for reminders, queued messages and signals. */
import { COMMAND_BODIES } from '@coxswain/protocol';
import * as z from 'zod';
import { mcpTool } from '../mcp-tool.ts';
import { ToolRefusal } from '../tool-trouble.ts';
import { existingSession } from './existing-session.ts';
import { sending, taken } from './taken-command.ts';
import { OfSession, SteerMode, Taken } from './tool-inputs.ts';

const { remind: remindBody, revoke: revokeBody, replace: replaceBody, signal: signalBody } = COMMAND_BODIES;
const PendingId = revokeBody.shape.command_id.describe(
  'Id of the command that sent it: command_id of steer, remind or follow_up, or of an entry of pending in get_session.',
);

/** The tool `remind`. */
export const remind = mcpTool({
  name: 'remind',
  title: 'Remind a session',
  description:
    'Add a <system-reminder> to the prompts of a session, permanently or for some turns, in addition to the messages of its ' +
    'user. To give an instruction, use steer.',
  scope: 'steer',
  input: z.strictObject({
    ...OfSession,
    body: remindBody.shape.body.describe('Text of the reminder.'),
    mode: SteerMode,
    preempt: z
      .boolean()
      .default(false)
      .describe('With interrupt_immediate: also end the streaming answer and the running calls.'),
    dedupe_key: remindBody.shape.dedupe_key.describe('Replaces the reminder with the same key.'),
    ttl_turns: remindBody.shape.ttl_turns.describe(
      'Number of turns that include it. Default: all, until it is revoked.',
    ),
    preserve_on_compact: remindBody.shape.preserve_on_compact.describe('Keep it after a compaction of the transcript.'),
    propagate: remindBody.shape.propagate.describe(
      'session (default): this session and its direct children. all: also their children. none: only this session.',
    ),
  }),
  output: Taken,
  run: async ({ session_id, body, preempt, mode, ...reminder }, use) => {
    if (preempt && mode !== 'interrupt_immediate')
      throw new ToolRefusal('invalid_field', 'preempt: requires the mode interrupt_immediate', 'preempt');
    const { session } = await existingSession(use.client, session_id);
    const { dedupe_key: dedupeKey, ttl_turns: ttlTurns, preserve_on_compact: preserveOnCompact, propagate } = reminder;
    const when = preempt ? { preempt } : { mode };
    const about = { ...when, dedupeKey, ttlTurns, preserveOnCompact, propagate };
    return taken(session, await session.remind(body, { ...about, ...sending(use) }));
  },
});

/** The tool `revoke`. */
export const revoke = mcpTool({
  name: 'revoke',
  title: 'Withdraw a queued message',
  description:
    'Withdraw a queued steering message, follow-up or reminder, or a reminder in force. A delivered message cannot be ' +
    'withdrawn: already_delivered.',
  scope: 'steer',
  idempotent: true,
  input: z.strictObject({ ...OfSession, command_id: PendingId }),
  output: Taken,
  run: async ({ session_id, command_id }, use) => {
    const { session } = await existingSession(use.client, session_id);
    return taken(session, await session.revoke(command_id, sending(use)));
  },
});

/** The tool `replace`. */
export const replace = mcpTool({
  name: 'replace',
  title: 'Replace a queued message',
  description: 'Replace the text of a queued steering message, follow-up or reminder, which keeps its place.',
  scope: 'steer',
  input: z.strictObject({
    ...OfSession,
    command_id: PendingId,
    body: replaceBody.shape.body.describe('New text.'),
  }),
  output: Taken,
  run: async ({ session_id, command_id, body }, use) => {
    const { session } = await existingSession(use.client, session_id);
    return taken(session, await session.replace(command_id, body, sending(use)));
  },
});

/** The tool `signal`. */
export const signal = mcpTool({
  name: 'signal',
  title: 'Signal a session',
  description:
    'Send a named signal with data to a session. It wakes a session that is suspended until this signal, and is stored for one that ' +
    'does not wait for it yet. get_session returns the expected signal.',
  scope: 'run',
  input: z.strictObject({
    ...OfSession,
    name: signalBody.shape.name.describe('Name of the signal.'),
    data: signalBody.shape.data.describe('Any JSON. The model of the session gets it.'),
  }),
  output: Taken,
  run: async ({ session_id, name, data }, use) => {
    const { session } = await existingSession(use.client, session_id);
    return taken(session, await session.signal(name, data, sending(use)));
  },
});
