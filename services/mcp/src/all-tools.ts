import type { McpTool } from './mcp-tool.ts';
import { approve, deny, listApprovals } from './tools/approval-tools.ts';
import { forkSession, getTree } from './tools/crew-tools.ts';
import { getResult, getSession, listSessions } from './tools/look-tools.ts';
import { remind, replace, revoke, signal } from './tools/pending-tools.ts';
import { readEvents } from './tools/read-events.ts';
import { followUp, listPersonas, startSession } from './tools/start-tools.ts';
import { cancel, cancelCall, resume, steer, suspend } from './tools/steer-tools.ts';
import { waitFor } from './tools/wait-for.ts';

/** The tools, in the order in which clients list them. */
export const ALL_TOOLS: readonly McpTool[] = [
  startSession,
  waitFor,
  getResult,
  getSession,
  readEvents,
  listSessions,
  getTree,
  steer,
  remind,
  followUp,
  revoke,
  replace,
  listApprovals,
  approve,
  deny,
  cancel,
  cancelCall,
  suspend,
  resume,
  signal,
  forkSession,
  listPersonas,
];
