/** Tools for related sessions: the tree of child sessions, and forks. */
import { nodesOf, topState, type WireTreeNode } from '@coxswain/client';
import { ForkChanges, SessionId, Usage } from '@coxswain/protocol';
import * as z from 'zod';
import { MCP_SERVER_BOUNDS } from '../mcp-server-bounds.ts';
import { mcpTool } from '../mcp-tool.ts';
import { ToolRefusal, troubleOf } from '../tool-trouble.ts';
import { existingSession } from './existing-session.ts';
import { sending, taken } from './taken-command.ts';
import { OfSession, Taken } from './tool-inputs.ts';

const { treeMax } = MCP_SERVER_BOUNDS;

const Node = z.strictObject({
  session_id: z.string(),
  parent: z.string().nullable().describe('Parent session in this list; null for the root.'),
  call_id: z.string().nullable().describe('Tool call of the parent that it works for.'),
  persona: z.string().nullable(),
  model: z.string().nullable(),
  state: z.string().nullable().describe('Null until its journal exists.'),
  stop_reason: z.string().nullable(),
  approvals: z.number().int().describe('Number of pending approvals.'),
  usage: Usage.describe('Without its children.'),
  cost_usd: z.number().nullable(),
});

/** The tool `get_tree`. */
export const getTree = mcpTool({
  name: 'get_tree',
  title: 'See the sessions below a session',
  description: 'Return a session and its child sessions, parents first: state, pending approvals and cost of each.',
  scope: 'read',
  input: z.strictObject(OfSession),
  output: z.strictObject({
    session_id: z.string(),
    above: z.string().nullable().describe('Parent session.'),
    sessions: z.array(Node),
    left_out: z.number().int().describe('Number of omitted entries.'),
  }),
  run: async ({ session_id }, { client }) => {
    const { session } = await existingSession(client, session_id);
    const tree = await session.wire.tree();
    const nodes = nodesOf(tree.top);
    const parents = new Map(nodes.flatMap((node) => node.children.map((child) => [child.session_id, node.session_id])));
    return {
      session_id,
      above: tree.parent?.session ?? null,
      sessions: nodes.slice(0, treeMax).map((node) => shownNode(node, parents.get(node.session_id) ?? null)),
      left_out: tree.left_out + Math.max(0, nodes.length - treeMax),
    };
  },
});

function shownNode(node: WireTreeNode, parent: string | null): z.output<typeof Node> {
  const { session_id, call_id, persona, model, state, stop_reason, approvals, usage, cost_usd } = node;
  const shown = state === null ? null : topState(state);
  return { session_id, parent, call_id, persona, model, state: shown, stop_reason, approvals, usage, cost_usd };
}

const changes = ForkChanges.shape;

/** The tool `fork_session`. */
export const forkSession = mcpTool({
  name: 'fork_session',
  title: 'Fork a session',
  description:
    'Start a new session with the history of another session up to a record, which stays unchanged. prompt replaces ' +
    'the message of that record, or is the next prompt if the session had ended there. read_events returns the records.',
  scope: 'run',
  input: z.strictObject({
    ...OfSession,
    at: z.number().int().min(1).optional().describe('Record number: n of an event. Default: the newest.'),
    prompt: changes.prompt.describe('New text of the message of the record, or the next prompt of the fork.'),
    result: z.string().optional().describe('New result of the tool call that ends in the record.'),
    model: changes.model.describe('Another model from there, as provider/name.'),
    fork_id: SessionId.optional().describe('Id of the fork. Default: random.'),
  }),
  output: Taken.extend({ forked_at: z.number().int().describe('Last record that is shared with the origin.') }),
  run: async ({ session_id, at, fork_id, ...asked }, use) => {
    const { session } = await existingSession(use.client, session_id);
    const given = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined));
    const changed = Object.keys(given).length === 0 ? {} : { changes: given };
    // The operator of the server configures the host, not its client.
    const options = { ...sending(use), restricted: true };
    const forked = await session.fork({ at, ...changed, sessionId: fork_id, ...options }).catch(asAsked);
    return { ...taken(forked, forked.sent), forked_at: forked.forkedAt };
  },
});

/** Maps the field in an error of a start to the argument of the tool. */
function asAsked(error: unknown): never {
  const { code, message, field } = troubleOf(error);
  if (!field?.startsWith('fork.')) throw error;
  const asked = FIELDS_ASKED[field] ?? field.replace(/^fork\.(changes\.)?/, '');
  throw new ToolRefusal(code, message.replace(`${field}:`, `${asked}:`), asked);
}

const FIELDS_ASKED: Readonly<Record<string, string>> = { 'fork.n': 'at', 'fork.session': 'session_id' };
