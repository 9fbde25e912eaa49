/** MCP servers as tools, over stdio and Streamable HTTP. */
export { MissingVariableError, parseMcpConfig } from './mcp-config.ts';
export { MCP_BOUNDS, type McpBounds } from './mcp-connection.ts';
export { createMcpTools, type McpToolsOptions } from './mcp-tools.ts';
