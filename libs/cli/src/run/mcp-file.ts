/** Reads MCP servers from a file in the usual format: `{"mcpServers": {"name": {"command": …} | {"url": …}}}`. */
import { readFile } from 'node:fs/promises';
import { systemTrouble } from '@coxswain/ports/discovery';
import type { McpServers } from '@coxswain/protocol';
import { usageError } from '../line/mod.ts';

/**
 * Reads the file.
 * @throws CliError with exit code 2 naming the problem.
 */
export async function readMcpFile(path: string): Promise<McpServers> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw usageError(`--mcp ${path} cannot be read: ${systemTrouble(error)}`);
  }
  const { parseMcpConfig } = await import('@coxswain/adapter-mcp');
  const parsed = parseMcpConfig(text);
  if (typeof parsed === 'string') throw usageError(`--mcp ${path}: ${parsed}`);
  return parsed;
}
