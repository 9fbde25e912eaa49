/** What tools take and give in common. */
import { COMMAND_BODIES, ID_PATTERN, ModelName, Reason, SessionId, StopReason, Usage } from '@coxswain/protocol';
import * as z from 'zod';
import { MCP_SERVER_BOUNDS } from '../mcp-server-bounds.ts';

const { answerMaxChars } = MCP_SERVER_BOUNDS;
const start = COMMAND_BODIES.start.shape;

/** The session that a tool is about. */
export const OfSession = {
  session_id: SessionId.describe('The session’s whole id, as start_session or list_sessions gave it.'),
};
/** A call of it. */
export const OfCall = { ...OfSession, call_id: z.string().min(1).max(256).describe('The call’s id.') };

/** What a new session is made of: the body of a `start`, in part. */
export const StartWanted = z.strictObject({
  prompt: z.string().min(1).describe('What the agent is to do.'),
  persona: z
    .string()
    .regex(ID_PATTERN, { error: 'a name is 1 to 64 characters of A-Z a-z 0-9 _ -' })
    .optional()
    .describe(
      'Who works: the name of a persona, see list_personas. Without one: a plain agent with the built-in tools.',
    ),
  mode: start.mode.describe('One of the persona’s modes.'),
  model: ModelName.optional().describe(
    'provider/name, such as anthropic/claude-sonnet-4-5. Default: the persona’s, or the server’s own.',
  ),
  root: z
    .string()
    .min(1)
    .max(4_096)
    .optional()
    .describe('The folder that its tools may touch. Default: the one in which the server was started.'),
  session_id: SessionId.optional().describe(
    'The new session’s id; a start under an id that is there is refused. Default: a random one.',
  ),
  max_turns: start.max_turns.describe('At most so many turns (50).'),
  limits: start.limits.describe('Budgets: what it may use before it is ended.'),
  tools: start.tools.describe('Which tools it has, by globs.'),
  permissions: start.permissions.describe('Rules: which calls run, wait for an approval (ask), or are refused.'),
  metadata: start.metadata.describe('Anything; it is kept with the session.'),
});
/** See {@link StartWanted}. */
export type StartWanted = z.output<typeof StartWanted>;

/** A persona that a start may name. */
export const ListedPersona = z.strictObject({
  name: z.string(),
  description: z.string().nullable(),
  version: z.string().nullable(),
  modes: z.array(z.string()),
  source: z.enum(['folder', 'served']).describe('A file of the server’s folder, or served by processes on the bus.'),
  available: z.boolean().describe('False where it is paused, or nobody serves it now: a session of it would wait.'),
});
/** See {@link ListedPersona}. */
export type ListedPersona = z.output<typeof ListedPersona>;

/** Where a session stands. */
export const StateFields = {
  state: z
    .string()
    .describe(
      'stopped and failed have ended; function_awaiting_approval, suspended and daemon_idle wait; others work.',
    ),
  stop_reason: StopReason.nullable().describe('How the newest run ended; null while it runs.'),
  n: z.number().int().nonnegative().describe('The newest record: a position in its journal.'),
};

/** A command that the session has taken. */
export const Taken = z.strictObject({
  session_id: z.string(),
  command_id: z.string(),
  stage: z.enum(['accepted', 'delivered']),
  n: z.number().int().nullable().describe('The record that holds it.'),
  pending_for_next_run: z.boolean().describe('It waits for the next run: this one has ended.'),
});

/** A call that waits for a decision. */
export const Approval = z.strictObject({
  session_id: z.string(),
  persona: z.string().nullable(),
  call_id: z.string(),
  tool: z.string(),
  args: z.unknown().describe('Its arguments; a text of their JSON, cut, where they are long.'),
  question: z
    .string()
    .nullable()
    .describe('What is asked, where it is another question than whether the call may run.'),
  since: z.string(),
  expires_at: z.string().nullable(),
});

/** How a run ended. */
export const Result = z.strictObject({
  stop_reason: StopReason,
  text: z.string().describe(`The last answer; cut at ${answerMaxChars} characters.`),
  turns: z.number().int(),
  usage: Usage,
  cost_usd: z.number().nullable(),
  pending: z.number().int().describe('What waits for the next run.'),
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
});

/** When something said is delivered. */
export const SteerMode = COMMAND_BODIES.steer.shape.mode.describe(
  'finish_step (default): after the calls that run. interrupt_immediate: before the next call fires; calls not yet ' +
    'started are skipped. audit_only: into the transcript at the end, shown to no model.',
);
/** Why. */
export const Why = Reason.optional().describe('Why; it is recorded.');
