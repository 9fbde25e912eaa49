/** Tools that start work: new sessions, follow-ups, and the list of personas. */
import {
  CommandRejectedError,
  hasEnded,
  newSessionId,
  type SentCommand,
  type Session,
  sentCommand,
} from '@coxswain/client';
import { allowanceOf, COMMAND_BODIES } from '@coxswain/protocol';
import * as z from 'zod';
import { MCP_SERVER_BOUNDS } from '../mcp-server-bounds.ts';
import { mcpTool, type ToolUse } from '../mcp-tool.ts';
import { ToolRefusal } from '../tool-trouble.ts';
import { existingSession } from './existing-session.ts';
import { sending, taken } from './taken-command.ts';
import { ListedPersona, OfSession, StartWanted, Taken } from './tool-inputs.ts';

const { personasMax } = MCP_SERVER_BOUNDS;

/** The tool `start_session`. */
export const startSession = mcpTool({
  name: 'start_session',
  title: 'Start a session',
  description:
    'Start an agent with a prompt and return at once: the session works durably in the background, also after you disconnect. ' +
    'Then use wait_for, read_events, steer and get_result.',
  scope: 'run',
  input: StartWanted,
  output: Taken,
  run: async ({ session_id, ...wanted }, use) => {
    expectMayAllow(wanted, use);
    const body = await use.access.startBody(wanted);
    const session = use.client.session(session_id ?? newSessionId());
    const sent = await session.wire.send('start', body, sending(use));
    return taken(session, sentCommand(sent));
  },
});

/**
 * Rejects a start that would allow its own calls, if the client may not approve calls.
 * @throws ToolRefusal `scope_missing`.
 */
function expectMayAllow({ permissions }: Pick<StartWanted, 'permissions'>, { scopes }: ToolUse): void {
  const field = scopes.has('approve') ? null : allowanceOf({ permissions });
  if (field === null) return;
  const message = `${field}: lets calls run without an approval, which needs the scope approve`;
  throw new ToolRefusal('scope_missing', message, field);
}

const FollowedUp = Taken.extend({
  became: z
    .enum(['prompt', 'followup'])
    .describe(
      'prompt: the session had ended, and its next run has started. followup: it is queued after the current work.',
    ),
});

/** The tool `follow_up`. */
export const followUp = mcpTool({
  name: 'follow_up',
  title: 'Queue a follow-up',
  description:
    'Queue a prompt for the end of the current work. In an ended session it starts the next run. To change ' +
    'the current work, use steer.',
  scope: 'run',
  input: z.strictObject({ ...OfSession, body: COMMAND_BODIES.followup.shape.body.describe('Text of the prompt.') }),
  output: FollowedUp,
  run: async ({ session_id, body }, use) => {
    const { session, newest } = await existingSession(use.client, session_id);
    const prompted = hasEnded(newest.state) ? await promptUnlessBusy(session, body, use) : null;
    if (prompted) return { ...taken(session, prompted), became: 'prompt' as const };
    const queued = await session.followup(body, sending(use));
    // The run ended just before: revoke the message and start the next run with it.
    if (!queued.receipt?.pendingForNextRun || !(await takeBack(session, queued, use)))
      return { ...taken(session, queued), became: 'followup' as const };
    const instead = await promptUnlessBusy(session, body, use);
    if (instead) return { ...taken(session, instead), became: 'prompt' as const };
    return { ...taken(session, await session.followup(body, sending(use))), became: 'followup' as const };
  },
});

/** Starts the next run. Returns null if another client has started one meanwhile. */
async function promptUnlessBusy(session: Session, body: string, use: ToolUse): Promise<SentCommand | null> {
  try {
    return await session.prompt(body, sending(use));
  } catch (error) {
    if (error instanceof CommandRejectedError && error.code === 'session_busy') return null;
    throw error;
  }
}

/**
 * Revokes a queued message. Returns false if the session rejects that, for example because a new run already has the
 * message.
 */
async function takeBack(session: Session, { commandId }: SentCommand, use: ToolUse): Promise<boolean> {
  try {
    await session.revoke(commandId, sending(use));
    return true;
  } catch (error) {
    if (error instanceof CommandRejectedError) return false;
    throw error;
  }
}

/** The tool `list_personas`. */
export const listPersonas = mcpTool({
  name: 'list_personas',
  title: 'List personas',
  description:
    'List the personas (agent definitions with a prompt, tools and a model) that start_session accepts by name.',
  scope: 'read',
  input: z.strictObject({}),
  output: z.strictObject({
    personas: z.array(ListedPersona),
    more: z.number().int().describe('Number of omitted entries.'),
  }),
  run: async (_input, { access, client }) => {
    const all = await access.personas(client);
    return { personas: all.slice(0, personasMax), more: Math.max(0, all.length - personasMax) };
  },
});
