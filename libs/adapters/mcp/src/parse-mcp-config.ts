/** Reads the common `mcpServers` file. */
import { McpServers, problemSentences, readStrictly } from '@coxswain/protocol';

/**
 * Reads `{"mcpServers": {"<name>": {"command": …} | {"url": …}}}`. `"type": "stdio"` next to a command is accepted and
 * dropped. `${VAR}` is kept, and is expanded when a server starts.
 * @returns the servers, or a sentence with the problem and its place.
 */
export function parseMcpConfig(text: string): McpServers | string {
  let file: unknown;
  try {
    file = JSON.parse(text.replace(/^\ufeff/, ''));
  } catch (error) {
    return `the MCP configuration is not JSON: ${(error as Error).message}`;
  }
  if (!isObject(file)) return 'the MCP configuration must be an object with the key mcpServers';
  const other = Object.keys(file).find((key) => key !== 'mcpServers' && key !== '$schema');
  if (!Object.hasOwn(file, 'mcpServers')) {
    return `the MCP configuration has no key mcpServers${other === undefined ? '' : `, only ${other}`}`;
  }
  if (other !== undefined) return `the MCP configuration has the key ${other}; only mcpServers is valid`;
  if (!isObject(file.mcpServers)) return 'mcpServers must be an object: server name to server';

  const servers: [name: string, server: unknown][] = [];
  for (const [name, server] of Object.entries(file.mcpServers)) {
    if (!/^[A-Za-z0-9_-]{1,48}$/.test(name)) {
      return `mcpServers: the name ${JSON.stringify(name)} must be 1 to 48 characters of A-Z a-z 0-9 _ -`;
    }
    const problem = problemOf(server);
    if (problem !== null) return `mcpServers.${name}${problem}`;
    servers.push([name, withoutStdioType(server as Record<string, unknown>)]);
  }
  const read = readStrictly(McpServers, Object.fromEntries(servers));
  if (read.ok) return read.data;
  const [problem] = read.problems;
  return problemSentences([{ ...problem, path: ['mcpServers', ...problem.path] }]).join();
}

function problemOf(server: unknown): string | null {
  if (!isObject(server)) return ' must be an object with a command or a url';
  const { command, url, type } = server;
  if (command !== undefined && url !== undefined) return ' has a command and a url; a server has one of them';
  if (command === undefined && url === undefined) return ' has neither a command nor a url';
  if (type === 'sse')
    return '.type: the transport sse is no longer supported; use the Streamable HTTP address of the server';
  return null;
}

/** Removes `"type": "stdio"`, which many configurations have next to a command and which adds no information. */
function withoutStdioType(server: Record<string, unknown>): Record<string, unknown> {
  if (server.command === undefined || server.type !== 'stdio') return server;
  const { type: _stdio, ...rest } = server;
  return rest;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
