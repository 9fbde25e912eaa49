/** Commands of tools. Each waits until the session has accepted it. */
import type { SendOptions, SentCommand, Session } from '@coxswain/client';
import type { z } from 'zod';
import { MCP_SERVER_BOUNDS } from '../mcp-server-bounds.ts';
import type { ToolUse } from '../mcp-tool.ts';
import type { Taken } from './tool-inputs.ts';

/** The options of a command that a tool sends. */
export function sending({ actor, signal }: ToolUse): SendOptions & { readonly wait: 'accepted' } {
  return { wait: 'accepted', timeoutMs: MCP_SERVER_BOUNDS.acceptedWithinMs, actor, signal };
}

/** Formats an accepted command. */
export function taken({ id }: Session, { commandId, receipt }: SentCommand): z.output<typeof Taken> {
  return {
    session_id: id,
    command_id: commandId,
    stage: receipt?.stage === 'delivered' ? 'delivered' : 'accepted',
    n: receipt?.n ?? null,
    pending_for_next_run: receipt?.pendingForNextRun === true,
  };
}
