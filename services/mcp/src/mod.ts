/** Coxswain as an MCP server, for programs that run it in their own process. */
export { MCP_SCOPES, type McpScope, type SessionsAccess } from './sessions-access.ts';
export { type McpService, type McpServiceOptions, startMcpService } from './start-mcp-service.ts';
export type { ListedPersona, StartWanted } from './tools/tool-inputs.ts';
