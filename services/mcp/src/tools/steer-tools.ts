/** Tools that change what a session does: steer, cancel, cancel a call, suspend, resume. */
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

/** `steer`. */
export const steer = mcpTool({
  name: 'steer',
  title: 'Steer a session',
  description:
    'Says something to a session while it works: it is delivered to its model as a user message, when mode says. What is ' +
    'said to one that has ended waits for its next run: give it more to do with follow_up.',
  scope: 'steer',
  input: z.strictObject({
    ...OfSession,
    body: steerBody.body.describe('What to tell it.'),
    mode: SteerMode,
    preempt: z
      .boolean()
      .default(false)
      .describe('With interrupt_immediate: also ends the answer that streams and the calls that run.'),
    dedupe_key: steerBody.dedupe_key.describe('What waits under the same key makes way for this.'),
    wait: z
      .enum(['accepted', 'delivered'])
      .default('accepted')
      .describe('Return once the session has taken it, or once its model is shown it.'),
    timeout_ms: z
      .number()
      .int()
      .min(1)
      .max(waitMaxMs)
      .default(waitDefaultMs)
      .describe('With wait delivered: how long at most.'),
  }),
  output: Taken.extend({
    seam: z.string().nullable().describe('Where it was delivered.'),
    turn: z.number().int().nullable(),
  }),
  run: async ({ session_id, body, mode, preempt, dedupe_key, wait, timeout_ms }, use) => {
    if (preempt && mode !== 'interrupt_immediate')
      throw new ToolRefusal('invalid_field', 'preempt: goes with the mode interrupt_immediate only', 'preempt');
    const { session } = await existingSession(use.client, session_id);
    const waiting = wait === 'delivered' ? ({ wait, timeoutMs: timeout_ms } as const) : {};
    const when = preempt ? { preempt } : { mode };
    const sent = await session.steer(body, { ...when, dedupeKey: dedupe_key, ...sending(use), ...waiting });
    return { ...taken(session, sent), seam: sent.receipt?.seam ?? null, turn: sent.receipt?.turn ?? null };
  },
});

/** `cancel`. */
export const cancel = mcpTool({
  name: 'cancel',
  title: 'Cancel a session',
  description:
    'Ends the run of a session at once, with its calls and its children. The session stays: follow_up begins its next run.',
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
    'cancelled, already_cancelled, not_found (it is not open), or timeout (it did not stop; its late answer is dropped).',
  ),
});

/** `cancel_call`. */
export const cancelCall = mcpTool({
  name: 'cancel_call',
  title: 'Cancel one call',
  description:
    'Stops one call of a session; the session goes on, and its model is told. get_session lists the open calls.',
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

/** `suspend`. */
export const suspend = mcpTool({
  name: 'suspend',
  title: 'Suspend a session',
  description:
    'Parks a session at the end of its present turn, until it is resumed, so long has passed, or a signal comes. Costs nothing meanwhile.',
  scope: 'run',
  input: z.strictObject({
    ...OfSession,
    for_ms: COMMAND_BODIES.suspend.shape.for_ms.describe('Wake it after so long. Without it: when it is resumed.'),
    until_signal: COMMAND_BODIES.suspend.shape.signal.describe('Wake it by a signal of this name; see signal.'),
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

/** `resume`. */
export const resume = mcpTool({
  name: 'resume',
  title: 'Resume a session',
  description: 'Lets a suspended session go on.',
  scope: 'run',
  input: z.strictObject(OfSession),
  output: Taken,
  run: async ({ session_id }, use) => {
    const { session } = await existingSession(use.client, session_id);
    return taken(session, await session.resume(sending(use)));
  },
});
