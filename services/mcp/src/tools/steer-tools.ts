/** Tools that change the work of a session: steer, cancel, cancel a call, suspend, resume. */
import { CallCancellation, COMMAND_BODIES } from '@coxswain/protocol';
import * as z from 'zod';
import { MCP_SERVER_BOUNDS } from '../mcp-server-bounds.ts';
import { mcpTool } from '../mcp-tool.ts';
import { ToolRefusal } from '../tool-trouble.ts';
import { existingSession } from './existing-session.ts';
import { sending, taken } from './taken-command.ts';
import { OfCall, OfSession, SteerMode, Taken, Why } from './tool-inputs.ts';

const { waitMaxMs, waitDefaultMs } = MCP_SERVER_BOUNDS;
const steerBody = COMMAND_BODIES.steer.shape;

/** The tool `steer`. */
export const steer = mcpTool({
  name: 'steer',
  title: 'Steer a session',
  description:
    'Send a message into a running session. Its model gets it as a user message; mode sets the moment. A message ' +
    'to an ended session waits for its next run: use follow_up to start one.',
  scope: 'steer',
  input: z.strictObject({
    ...OfSession,
    body: steerBody.body.describe('Text of the message.'),
    mode: SteerMode,
    preempt: z
      .boolean()
      .default(false)
      .describe('With interrupt_immediate: also end the streaming answer and the running calls.'),
    dedupe_key: steerBody.dedupe_key.describe('Replaces the queued message with the same key.'),
    wait: z
      .enum(['accepted', 'delivered'])
      .default('accepted')
      .describe('Return once the session has accepted it, or once the model gets it.'),
    timeout_ms: z
      .number()
      .int()
      .min(1)
      .max(waitMaxMs)
      .default(waitDefaultMs)
      .describe('Time limit of wait: delivered.'),
  }),
  output: Taken.extend({
    seam: z.string().nullable().describe('Injection point of the delivery.'),
    turn: z.number().int().nullable(),
  }),
  run: async ({ session_id, body, mode, preempt, dedupe_key, wait, timeout_ms }, use) => {
    if (preempt && mode !== 'interrupt_immediate')
      throw new ToolRefusal('invalid_field', 'preempt: requires the mode interrupt_immediate', 'preempt');
    const { session } = await existingSession(use.client, session_id);
    const waiting = wait === 'delivered' ? ({ wait, timeoutMs: timeout_ms } as const) : {};
    const when = preempt ? { preempt } : { mode };
    const sent = await session.steer(body, { ...when, dedupeKey: dedupe_key, ...sending(use), ...waiting });
    return { ...taken(session, sent), seam: sent.receipt?.seam ?? null, turn: sent.receipt?.turn ?? null };
  },
});

/** The tool `cancel`. */
export const cancel = mcpTool({
  name: 'cancel',
  title: 'Cancel a session',
  description:
    'End the run of a session at once, with its tool calls and child sessions. The session stays: follow_up starts its next run.',
  scope: 'run',
  destructive: true,
  idempotent: true,
  input: z.strictObject({ ...OfSession, reason: Why }),
  output: Taken,
  run: async ({ session_id, reason }, use) => {
    const { session } = await existingSession(use.client, session_id);
    return taken(session, await session.cancel(reason, sending(use)));
  },
});

const CallCancelled = z.strictObject({
  session_id: z.string(),
  command_id: z.string(),
  ...CallCancellation.shape,
  outcome: CallCancellation.shape.outcome.describe(
    'cancelled, already_cancelled, not_found (it is not open), or timeout (it did not stop; its late result is dropped).',
  ),
});

/** The tool `cancel_call`. */
export const cancelCall = mcpTool({
  name: 'cancel_call',
  title: 'Cancel one call',
  description:
    'Cancel one tool call. The session continues, and its model is notified. get_session lists the open calls.',
  scope: 'steer',
  destructive: true,
  idempotent: true,
  input: z.strictObject({ ...OfCall, reason: Why }),
  output: CallCancelled,
  run: async ({ session_id, call_id, reason }, use) => {
    const { session } = await existingSession(use.client, session_id);
    const { actor, signal } = use;
    const { outcome, tool, reason: why, sent } = await session.cancelCall(call_id, { actor, signal, reason });
    return { session_id, command_id: sent.commandId, outcome, call_id, tool, reason: why };
  },
});

/** The tool `suspend`. */
export const suspend = mcpTool({
  name: 'suspend',
  title: 'Suspend a session',
  description:
    'Suspend a session at the end of its current turn, until it is resumed, a time has passed, or a signal arrives. It uses no resources meanwhile.',
  scope: 'run',
  input: z.strictObject({
    ...OfSession,
    for_ms: COMMAND_BODIES.suspend.shape.for_ms.describe('Wake it after this time. Default: when it is resumed.'),
    until_signal: COMMAND_BODIES.suspend.shape.signal.describe('Wake it by this signal; see signal.'),
    reason: Why,
  }),
  output: Taken,
  run: async ({ session_id, for_ms, until_signal, reason }, use) => {
    const { session } = await existingSession(use.client, session_id);
    const request = {
      ...(for_ms === undefined ? {} : { forMs: for_ms }),
      ...(until_signal === undefined ? {} : { signal: until_signal }),
      ...(reason === undefined ? {} : { reason }),
    };
    return taken(session, await session.suspend(request, sending(use)));
  },
});

/** The tool `resume`. */
export const resume = mcpTool({
  name: 'resume',
  title: 'Resume a session',
  description: 'Resume a suspended session.',
  scope: 'run',
  input: z.strictObject(OfSession),
  output: Taken,
  run: async ({ session_id }, use) => {
    const { session } = await existingSession(use.client, session_id);
    return taken(session, await session.resume(sending(use)));
  },
});
