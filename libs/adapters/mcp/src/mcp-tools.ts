/** MCP servers as a source of tools: started side by side, their configured order kept. */
import type { ToolCall, ToolOutcome, ToolSource, Toolset, ToolsetSpec } from '@coxswain/ports';
import type { Failure } from '@coxswain/protocol';
import { MCP_BOUNDS, type McpBounds, McpConnection } from './mcp-connection.ts';

/** Options of {@link createMcpTools}. */
export interface McpToolsOptions {
  /** Where `${NAME}` in env and headers is looked up. Default: the process's environment. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly bounds?: Partial<McpBounds>;
  /** A server has changed its list; the toolset's `tools` show it. */
  readonly onChanged?: (spec: ToolsetSpec) => void;
}

/** MCP servers as a {@link ToolSource}. Its failures have the code `mcp_server_failed` and name the server. */
export function createMcpTools(options: McpToolsOptions = {}): ToolSource {
  const bounds = { ...MCP_BOUNDS, ...options.bounds };
  return {
    async open(spec, signal) {
      const connections = Object.entries(spec.mcpServers).map(
        ([name, server]) =>
          new McpConnection({
            name,
            server,
            root: spec.root,
            env: options.env ?? process.env,
            bounds,
            onListChanged: () => options.onChanged?.(spec),
          }),
      );
      const failures = await Promise.all(connections.map((connection) => openOrFail(connection, signal)));
      const failure = failures.find((candidate) => candidate !== null);
      if (failure) {
        await Promise.all(connections.map((connection) => connection.close()));
        return failure;
      }
      return new McpToolset(connections);
    },
  };
}

async function openOrFail(connection: McpConnection, signal: AbortSignal): Promise<Failure | null> {
  try {
    await connection.open(signal);
    return null;
  } catch (error) {
    return connection.failure(error as Error);
  }
}

class McpToolset implements Toolset {
  readonly #connections: readonly McpConnection[];

  constructor(connections: readonly McpConnection[]) {
    this.#connections = connections;
  }

  get tools() {
    return this.#connections.flatMap((connection) => connection.tools);
  }

  async call(call: ToolCall, signal: AbortSignal): Promise<ToolOutcome> {
    const connection = this.#connections.find((candidate) => candidate.tools.some((tool) => tool.name === call.tool));
    if (connection) return connection.call(call, signal);
    const text = `No MCP server has the tool ${call.tool} any more.`;
    return {
      status: 'unavailable',
      result: { content: [{ type: 'text', text }], is_error: true, detail: { code: 'tool_unavailable' } },
    };
  }

  // MCP has no question for what became of a request of a connection that is gone.
  async probe() {
    return { state: 'unknown' } as const;
  }

  async close(): Promise<readonly string[]> {
    return (await Promise.all(this.#connections.map((connection) => connection.close()))).flat();
  }
}
