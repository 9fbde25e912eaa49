/** Tools that read sessions: lists, one session, its result. */
import { hasEnded, SESSIONS_PAGE, topState } from '@coxswain/client';
import { INJECTION_VERBS, type SessionStatus, Usage } from '@coxswain/protocol';
import * as z from 'zod';
import { MCP_SERVER_BOUNDS } from '../mcp-server-bounds.ts';
import { mcpTool } from '../mcp-tool.ts';
import { shortenText } from '../shorten-text.ts';
import { existingSession } from './existing-session.ts';
import { shownApproval } from './shown-approvals.ts';
import { newestResult, shownResult } from './shown-result.ts';
import { Approval, OfSession, Result, StateFields } from './tool-inputs.ts';

const { sessionsMax, sessionsDefault, entriesMax } = MCP_SERVER_BOUNDS;

const ListedSession = z.strictObject({
  session_id: z.string(),
  ...StateFields,
  at: z.string().describe('Time of the newest record.'),
  persona: z.string().nullable(),
  model: z.string().nullable(),
  turn: z.number().int().nullable(),
  cost_usd: z.number().nullable(),
  approvals: z.number().int().describe('Number of pending approvals.'),
  parent: z.string().nullable().describe('Parent session.'),
});

/** The tool `list_sessions`. */
export const listSessions = mcpTool({
  name: 'list_sessions',
  title: 'List sessions',
  description: 'List sessions, the most recently changed first.',
  scope: 'read',
  input: z.strictObject({
    state: z
      .string()
      .max(64)
      .optional()
      .describe('Only sessions in this state, such as function_awaiting_approval or stopped.'),
    persona: z.string().max(64).optional().describe('Only sessions of this persona.'),
    limit: z.number().int().min(1).max(sessionsMax).default(sessionsDefault).describe('Maximum number of entries.'),
    cursor: z.string().max(1_024).optional().describe('next_cursor of the previous page.'),
  }),
  output: z.strictObject({ sessions: z.array(ListedSession), next_cursor: z.string().nullable() }),
  run: async ({ limit, ...query }, { client }) => {
    const page = await client.wire.listSessions({
      ...query,
      limit: Math.min(limit, SESSIONS_PAGE.sessionsMax),
      details: true,
    });
    const sessions = page.sessions.map(({ session_id, n, at, state, stop_reason, details }) => ({
      session_id,
      ...{ state: topState(state), stop_reason, n, at },
      persona: details?.persona ?? null,
      model: details?.model ?? null,
      turn: details?.turn ?? null,
      cost_usd: details?.cost_usd ?? null,
      approvals: details?.approvals ?? 0,
      parent: details?.parent?.session ?? null,
    }));
    return { sessions, next_cursor: page.next_cursor };
  },
});

const SessionShown = z.strictObject({
  session_id: z.string(),
  ...StateFields,
  persona: z.string().nullable(),
  model: z.string().nullable(),
  run: z.number().int(),
  turn: z.number().int(),
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
  usage: Usage,
  cost_usd: z.number().nullable(),
  budgets: z.array(z.strictObject({ budget: z.string(), used: z.number(), limit: z.number() })),
  calls: z
    .array(z.strictObject({ call_id: z.string(), tool: z.string(), status: z.string() }))
    .describe('Open tool calls.'),
  approvals: z.array(Approval).describe('Pending approvals: approve or deny them.'),
  pending: z
    .array(
      z.strictObject({
        command_id: z.string(),
        kind: z.enum(INJECTION_VERBS),
        mode: z.string().nullable(),
        body: z.string(),
        actor: z.string().nullable(),
      }),
    )
    .describe('Queued messages in delivery order.'),
  suspended: z
    .strictObject({
      since: z.string(),
      reason: z.string().nullable(),
      until: z.string().nullable(),
      signal: z.string().nullable(),
    })
    .nullable(),
  waiting_for_persona: z.string().nullable().describe('A persona that is paused or has no running instance.'),
  children: z.array(z.strictObject({ session_id: z.string(), persona: z.string(), call_id: z.string() })),
  left_out: z.number().int().describe('Number of omitted entries of these lists.'),
});

/** The tool `get_session`. */
export const getSession = mcpTool({
  name: 'get_session',
  title: 'See a session',
  description: 'Return the current state of a session: open calls, approvals, queued messages, usage and cost.',
  scope: 'read',
  input: z.strictObject(OfSession),
  output: SessionShown,
  run: async ({ session_id }, { client, signal }) => {
    // No host would answer for an unknown session.
    const { session, newest } = await existingSession(client, session_id);
    return shownSession(await session.wire.stateAfter(newest.n, { signal }));
  },
});

function shownSession(status: SessionStatus): z.output<typeof SessionShown> {
  const { session_id, n, persona, model, run, turn, error, usage, cost_usd, suspended } = status;
  const lists = [status.calls, status.approvals, status.pending, status.children];
  return {
    session_id,
    ...{ state: topState(status.state), stop_reason: status.stop_reason, n },
    ...{ persona, model, run, turn, usage, cost_usd },
    error: error === null ? null : { code: error.code, message: shortenText(error.message) },
    budgets: status.budgets,
    calls: status.calls.slice(0, entriesMax),
    approvals: status.approvals.slice(0, entriesMax).map((one) => shownApproval(status, one)),
    pending: status.pending.slice(0, entriesMax).map(({ command_id, kind, mode, body, actor }) => ({
      command_id,
      kind,
      mode: mode ?? null,
      body: shortenText(body),
      actor: actor?.name ?? null,
    })),
    suspended: suspended && {
      since: suspended.since,
      reason: suspended.reason === null ? null : shortenText(suspended.reason),
      until: suspended.until,
      signal: suspended.signal,
    },
    waiting_for_persona: status.waiting_for_persona?.persona ?? null,
    children: status.children
      .slice(0, entriesMax)
      .map(({ session, persona: of, call_id }) => ({ session_id: session, persona: of, call_id })),
    left_out: lists.reduce((sum, list) => sum + Math.max(0, list.length - entriesMax), 0),
  };
}

/** The tool `get_result`. */
export const getResult = mcpTool({
  name: 'get_result',
  title: 'Get the result of a session',
  description:
    'Return the last answer of an ended run, its stop reason and its usage. Null while the run continues: use wait_for.',
  scope: 'read',
  input: z.strictObject(OfSession),
  output: z.strictObject({ session_id: z.string(), ...StateFields, result: Result.nullable() }),
  run: async ({ session_id }, { client }) => {
    const { session, newest } = await existingSession(client, session_id);
    const ended = hasEnded(newest.state);
    const result = ended ? await newestResult(session.journal()) : null;
    return {
      session_id,
      ...{ state: topState(newest.state), stop_reason: result?.stopReason ?? null, n: newest.n },
      result: result && shownResult(result),
    };
  },
});
