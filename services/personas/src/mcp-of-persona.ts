/** MCP servers of a served persona. They are started once per process, and all sessions share them. */
import { createMcpTools } from '@coxswain/adapter-mcp';
import type { ForeignTool } from '@coxswain/client';
import type { Log, ToolOutcome, Toolset } from '@coxswain/ports';
import { type McpServers, SessionId, TenantId, type ToolResult } from '@coxswain/protocol';

/** A persona's MCP server failed to start. */
export class PersonaServersError extends Error {
  override readonly name = 'PersonaServersError';
  readonly code = 'mcp_server_failed';
}

/** Running MCP servers and their tools. */
export interface McpOfPersona {
  readonly tools: readonly ForeignTool[];
  close(): Promise<void>;
}

/**
 * Starts the MCP servers of a persona.
 * @throws PersonaServersError if one fails to start.
 */
export async function openMcpOf(
  persona: string,
  tenant: string,
  mcpServers: McpServers,
  root: string,
  env: NodeJS.ProcessEnv,
  log: Log,
): Promise<McpOfPersona> {
  if (Object.keys(mcpServers).length === 0) return { tools: [], close: async () => undefined };
  const source = createMcpTools({
    env,
    onNotice: ({ server, level, text }) => log.info({ persona, server, level }, text),
    // Sessions have pinned the list of tools, so this process does not announce a changed one. A new process does.
    onChanged: () => log.warn({ persona }, 'an MCP server has changed its list of tools; restart to use it'),
  });
  const ref = { tenant: TenantId.parse(tenant), sessionId: SessionId.parse(`persona-${persona}`.slice(0, 64)) };
  const opened = await source.open({ ref, root, mcpServers }, new AbortController().signal);
  if ('code' in opened) throw new PersonaServersError(`${persona}: ${opened.message}`);
  return {
    tools: opened.tools.map((definition) => foreign(opened, definition)),
    async close() {
      for (const note of await opened.close()) log.warn({ persona }, note);
    },
  };
}

function foreign(toolset: Toolset, definition: ForeignTool['definition']): ForeignTool {
  return {
    definition,
    async call(
      args,
      { abortSignal: signal, toolCallId: callId, idempotencyKey, epoch, ref, progress, feedback },
    ): Promise<ToolResult> {
      const call = {
        idempotencyKey,
        ref,
        callId,
        tool: definition.name,
        args,
        epoch,
        onProgress: progress,
        onFeedback: feedback,
      };
      return resultOf(await toolset.call(call, signal));
    },
  };
}

/** @throws Error for a cancelled call: a result would count as its outcome, although its effect is unknown. */
function resultOf({ status, result }: ToolOutcome): ToolResult {
  if (status === 'cancelled') throw new Error('cancelled');
  return status === 'ok' ? result : { ...result, is_error: true };
}
