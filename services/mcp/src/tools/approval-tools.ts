/** Tools for calls that wait for a decision. */
import { COMMAND_BODIES } from '@coxswain/protocol';
import * as z from 'zod';
import { MCP_SERVER_BOUNDS } from '../mcp-server-bounds.ts';
import { mcpTool } from '../mcp-tool.ts';
import { existingSession } from './existing-session.ts';
import { shownApproval } from './shown-approvals.ts';
import { sending, taken } from './taken-command.ts';
import { Approval, OfCall, OfSession, Taken, Why } from './tool-inputs.ts';

const { approvalsMax } = MCP_SERVER_BOUNDS;
const approveBody = COMMAND_BODIES.approve.shape;
const Remember = approveBody.remember.describe(
  'Decide later calls like it the same way: in this session, or wherever its persona works.',
);

/** `list_approvals`. */
export const listApprovals = mcpTool({
  name: 'list_approvals',
  title: 'List approvals',
  description:
    'Calls that wait for a decision, in all sessions or in one, the one that has waited longest coming first.',
  scope: 'read',
  input: z.strictObject({
    session_id: OfSession.session_id.optional(),
    limit: z.number().int().min(1).max(approvalsMax).default(approvalsMax).describe('At most so many.'),
  }),
  output: z.strictObject({ approvals: z.array(Approval), more: z.number().int().describe('How many are left out.') }),
  run: async ({ session_id, limit }, { client }) => {
    const all = session_id === undefined ? await everywhere() : await ofOne(session_id);
    return { approvals: all.slice(0, limit), more: Math.max(0, all.length - limit) };

    async function everywhere() {
      return (await client.wire.approvals()).map((one) => shownApproval(one, one));
    }
    async function ofOne(id: string) {
      const { session, newest } = await existingSession(client, id);
      const status = await session.wire.stateAfter(newest.n);
      return status.approvals.map((one) => shownApproval(status, one));
    }
  },
});

/** `approve`. */
export const approve = mcpTool({
  name: 'approve',
  title: 'Approve a call',
  description:
    'Lets a waiting call run, as it was asked for or with other arguments. The first decision stands. Decide what you have ' +
    'been trusted to decide; leave the rest to a person.',
  scope: 'approve',
  destructive: true,
  input: z.strictObject({
    ...OfCall,
    reason: Why,
    args: approveBody.args.describe('Run it with these arguments instead.'),
    remember: Remember,
  }),
  output: Taken,
  run: async ({ session_id, call_id, ...more }, use) => {
    const { session } = await existingSession(use.client, session_id);
    return taken(session, await session.approve(call_id, { ...more, ...sending(use) }));
  },
});

/** `deny`. */
export const deny = mcpTool({
  name: 'deny',
  title: 'Deny a call',
  description: 'Refuses a waiting call; the session’s model is told why, and goes on. The first decision stands.',
  scope: 'approve',
  input: z.strictObject({ ...OfCall, reason: Why, remember: Remember }),
  output: Taken,
  run: async ({ session_id, call_id, ...more }, use) => {
    const { session } = await existingSession(use.client, session_id);
    return taken(session, await session.deny(call_id, { ...more, ...sending(use) }));
  },
});
