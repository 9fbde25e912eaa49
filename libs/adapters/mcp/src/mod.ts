/** The tool port for Model Context Protocol (MCP) servers. */
export { type HostEnvironment, MissingVariableError } from './expand-variables.ts';
export { IDEMPOTENCY_META_KEY } from './http-answers.ts';
export { MCP_BOUNDS } from './mcp-bounds.ts';
export { createMcpTools, type McpNotice, type McpToolsChange, type McpToolsOptions } from './mcp-tools.ts';
export { parseMcpConfig } from './parse-mcp-config.ts';
