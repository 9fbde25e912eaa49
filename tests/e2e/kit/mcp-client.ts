/** The official MCP client on a `cox mcp` of its own, and a pipe to one for what no client would send. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { Child, COX_MAIN, SHORT_LIVED } from './child.ts';
import { cleanEnv } from './clean-env.ts';
import { PATIENCE_MS } from './patience.ts';

/** What a tool gave. */
export type Given = Record<string, unknown>;

/** A client that is connected. */
export interface McpUnderTest {
  readonly client: Client;
  readonly pid: number;
  /** What the process has written to stderr. */
  readonly stderr: () => string;
  /** Calls a tool that works. */
  use(tool: string, args?: object): Promise<Given>;
  /** Calls a tool that does not: its sentence and its code. */
  refused(
    tool: string,
    args?: object,
  ): Promise<{ readonly text: string; readonly code: unknown; readonly field: unknown }>;
  close(): Promise<void>;
}

/** How `cox mcp` is started. */
export interface McpStart {
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

/** Starts `cox mcp` and connects. */
export async function startMcp({ args = [], env = {}, cwd }: McpStart): Promise<McpUnderTest> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [...SHORT_LIVED, COX_MAIN, 'mcp', ...args],
    env: cleanEnv(env) as Record<string, string>,
    ...(cwd === undefined ? {} : { cwd }),
    stderr: 'pipe',
  });
  let stderr = '';
  transport.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString('utf8');
  });
  const client = new Client({ name: 'test-agent', version: '1.0.0' });
  await client.connect(transport, { timeout: PATIENCE_MS });
  const call = async (tool: string, given: object): Promise<CallToolResult> => {
    const options = { timeout: PATIENCE_MS };
    return (await client.callTool({ name: tool, arguments: { ...given } }, undefined, options)) as CallToolResult;
  };
  return {
    client,
    pid: transport.pid as number,
    stderr: () => stderr,
    async use(tool, given = {}) {
      const result = await call(tool, given);
      if (result.isError) throw new Error(`${tool}: ${textOf(result)}`);
      return result.structuredContent as Given;
    },
    async refused(tool, given = {}) {
      const result = await call(tool, given);
      if (!result.isError) throw new Error(`${tool} did what it was asked for: ${textOf(result)}`);
      const { code, field } = (result._meta?.['coxswain/error'] ?? {}) as { code?: unknown; field?: unknown };
      return { text: textOf(result), code, field };
    },
    close: () => client.close(),
  };
}

/** `cox mcp` with nobody's client before it. */
export function rawMcp(env: NodeJS.ProcessEnv, args: readonly string[] = []): Child {
  return new Child(COX_MAIN, ['mcp', ...args], { env });
}

function textOf({ content }: CallToolResult): string {
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
}
