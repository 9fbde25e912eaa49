/** Tools for human-in-the-loop approvals. */
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
  'Remember the decision for similar calls: of this session, or of its persona.',
);

/** The tool `list_approvals`. */
export const listApprovals = mcpTool({
  name: 'list_approvals',
  title: 'List approvals',
  description: 'List pending approvals of all sessions or of one session, the oldest first.',
  scope: 'read',
  input: z.strictObject({
    session_id: OfSession.session_id.optional(),
    limit: z.number().int().min(1).max(approvalsMax).default(approvalsMax).describe('Maximum number of entries.'),
  }),
  output: z.strictObject({
    approvals: z.array(Approval),
    more: z.number().int().describe('Number of omitted entries.'),
  }),
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

/** The tool `approve`. */
export const approve = mcpTool({
  name: 'approve',
  title: 'Approve a call',
  description:
    'Approve a pending tool call, with its own or with other arguments. The first decision stays valid. Decide only what you ' +
    'are trusted to decide; leave other decisions to a person.',
  scope: 'approve',
  destructive: true,
  input: z.strictObject({
    ...OfCall,
    reason: Why,
    args: approveBody.args.describe('Replaces the arguments of the call.'),
    remember: Remember,
  }),
  output: Taken,
  run: async ({ session_id, call_id, ...more }, use) => {
    const { session } = await existingSession(use.client, session_id);
    return taken(session, await session.approve(call_id, { ...more, ...sending(use) }));
  },
});

/** The tool `deny`. */
export const deny = mcpTool({
  name: 'deny',
  title: 'Deny a call',
  description:
    'Deny a pending tool call. The model of the session gets the reason and continues. The first decision stays valid.',
  scope: 'approve',
  input: z.strictObject({ ...OfCall, reason: Why, remember: Remember }),
  output: Taken,
  run: async ({ session_id, call_id, ...more }, use) => {
    const { session } = await existingSession(use.client, session_id);
    return taken(session, await session.deny(call_id, { ...more, ...sending(use) }));
  },
});
