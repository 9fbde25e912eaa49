/** Schemas that several tools share. */
import { COMMAND_BODIES, ID_PATTERN, ModelName, Reason, SessionId, StopReason, Usage } from '@coxswain/protocol';
import * as z from 'zod';
import { MCP_SERVER_BOUNDS } from '../mcp-server-bounds.ts';

const { answerMaxChars } = MCP_SERVER_BOUNDS;
const start = COMMAND_BODIES.start.shape;

/** The argument for a session. */
export const OfSession = {
  session_id: SessionId.describe('Complete id of the session, from start_session or list_sessions.'),
};
/** The arguments for a call of a session. */
export const OfCall = { ...OfSession, call_id: z.string().min(1).max(256).describe('Id of the tool call.') };

/** The arguments of a new session: a part of the body of a `start`. */
export const StartWanted = z.strictObject({
  prompt: z.string().min(1).describe('Task of the agent.'),
  persona: z
    .string()
    .regex(ID_PATTERN, { error: 'a name is 1 to 64 characters of A-Z a-z 0-9 _ -' })
    .optional()
    .describe('Name of a persona of list_personas. Default: a plain agent with the built-in tools.'),
  mode: start.mode.describe('One of the persona’s modes.'),
  model: ModelName.optional().describe(
    'provider/name, such as anthropic/claude-sonnet-4-5. Default: the persona’s, or the server’s own.',
  ),
  root: z
    .string()
    .min(1)
    .max(4_096)
    .optional()
    .describe('Folder that its tools may access. Default: the folder in which the server was started.'),
  session_id: SessionId.optional().describe(
    'Id of the new session. A start with an existing id is rejected. Default: random.',
  ),
  max_turns: start.max_turns.describe('Maximum number of turns (50).'),
  limits: start.limits.describe('Budgets of the run.'),
  tools: start.tools.describe('Tools of the session, as globs.'),
  permissions: start.permissions.describe(
    'Permission rules: which calls run (allow), need an approval (ask), or are denied (deny).',
  ),
  metadata: start.metadata.describe('Any JSON object; stored with the session.'),
});
export type StartWanted = z.output<typeof StartWanted>;

/** A persona that a start may name. */
export const ListedPersona = z.strictObject({
  name: z.string(),
  description: z.string().nullable(),
  version: z.string().nullable(),
  modes: z.array(z.string()),
  source: z.enum(['folder', 'served']).describe('Source: a file in the folder of the server, or instances on the bus.'),
  available: z.boolean().describe('False if it is paused or has no running instance: a session would wait.'),
});
export type ListedPersona = z.output<typeof ListedPersona>;

/** The state of a session. */
export const StateFields = {
  state: z
    .string()
    .describe(
      'stopped and failed: ended. function_awaiting_approval, suspended and daemon_idle: waiting. Others: working.',
    ),
  stop_reason: StopReason.nullable().describe('Stop reason of the newest run; null while it runs.'),
  n: z.number().int().nonnegative().describe('Number of the newest record: the position in the journal.'),
};

/** A command that the session has accepted. */
export const Taken = z.strictObject({
  session_id: z.string(),
  command_id: z.string(),
  stage: z.enum(['accepted', 'delivered']),
  n: z.number().int().nullable().describe('Record that contains it.'),
  pending_for_next_run: z.boolean().describe('The run has ended; the message waits for the next run.'),
});

/** A pending approval. */
export const Approval = z.strictObject({
  session_id: z.string(),
  persona: z.string().nullable(),
  call_id: z.string(),
  tool: z.string(),
  args: z.unknown().describe('Arguments; long ones are a truncated JSON text.'),
  question: z.string().nullable().describe('The question, if it is not whether the call may run.'),
  since: z.string(),
  expires_at: z.string().nullable(),
});

/** The result of a run. */
export const Result = z.strictObject({
  stop_reason: StopReason,
  text: z.string().describe(`The last answer, truncated at ${answerMaxChars} characters.`),
  turns: z.number().int(),
  usage: Usage,
  cost_usd: z.number().nullable(),
  pending: z.number().int().describe('Number of messages that wait for the next run.'),
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
});

/** The delivery mode of a message. */
export const SteerMode = COMMAND_BODIES.steer.shape.mode.describe(
  'finish_step (default): after the running calls. interrupt_immediate: before the next call runs; calls not yet ' +
    'started are skipped. audit_only: into the transcript at the end of the run, never to the model.',
);
/** An optional reason. */
export const Why = Reason.optional().describe('Reason, recorded in the journal.');
