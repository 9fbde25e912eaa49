/** Serves sessions as tools of one MCP client, over a pair of streams. */
import type { Readable, Writable } from 'node:stream';
import { problemOf, readStrictly, VERSION } from '@coxswain/protocol';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
  type Tool,
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { ALL_TOOLS } from './all-tools.ts';
import { MCP_SERVER_BOUNDS } from './mcp-server-bounds.ts';
import type { McpTool } from './mcp-tool.ts';
import type { McpScope, SessionsAccess } from './sessions-access.ts';
import { troubleOf, troubleResult } from './tool-trouble.ts';

/** How it is served. */
export interface McpServiceOptions {
  readonly access: SessionsAccess;
  /** What the client may do; tools beyond are not offered. */
  readonly scopes: ReadonlySet<McpScope>;
  /** Where the client's messages come from, and where ours go: nothing else may be written there. */
  readonly input: Readable;
  readonly output: Writable;
  /** Told what is ours to mend, and what could not be read. */
  say(problem: string): void;
}

/** A server that runs. */
export interface McpService {
  /** Resolves when the client has gone, or has sent what cannot be gone on with. */
  readonly closed: Promise<void>;
  /** Takes back what still waits and leaves the streams. Sessions go on. */
  stop(): Promise<void>;
}

const INSTRUCTIONS =
  'Coxswain runs durable agent sessions that can be steered while they work. start_session returns at once; wait_for tells ' +
  'when a session has ended or waits for an approval; steer changes its course while it works; get_result has its answer. ' +
  'Sessions go on when you are gone.';

/** Starts serving. */
export async function startMcpService(options: McpServiceOptions): Promise<McpService> {
  const { access, scopes, input, output, say } = options;
  const offered = new Map(ALL_TOOLS.filter(({ scope }) => scopes.has(scope)).map((tool) => [tool.name, tool]));
  const server = new Server(
    { name: 'coxswain', title: 'Coxswain', version: VERSION },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  const gone = new AbortController();
  let atOnce = 0;

  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [...offered.values()].map(described) }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, _meta, sendNotification }) => {
    const tool = offered.get(params.name);
    if (!tool) throw new McpError(ErrorCode.InvalidParams, unknownTool(params.name, offered));
    if (atOnce >= MCP_SERVER_BOUNDS.callsAtOnceMax)
      return troubleResult({
        code: 'too_many_queries',
        message: `${atOnce} calls are worked on already; await some first`,
      });
    const token = _meta?.progressToken;
    let told = 0;
    const progress = (message: string) => {
      if (token === undefined) return;
      told++;
      const params = { progressToken: token, progress: told, message };
      // Whoever has gone is told nothing more.
      sendNotification({ method: 'notifications/progress', params }).catch(() => undefined);
    };
    atOnce++;
    try {
      return await call(tool, params.arguments ?? {}, AbortSignal.any([signal, gone.signal]), progress);
    } finally {
      atOnce--;
    }
  });

  async function call(
    tool: McpTool,
    given: unknown,
    signal: AbortSignal,
    progress: (message: string) => void,
  ): Promise<CallToolResult> {
    const read = readStrictly(tool.input, given);
    if (!read.ok) {
      const takes = Object.keys(tool.input.shape).join(', ') || 'no arguments';
      return troubleResult(problemOf(read.problems, undefined, `; ${tool.name} takes ${takes}`));
    }
    try {
      const client = await access.client(signal);
      const actor = access.actorOf(server.getClientVersion()?.name);
      const found = await tool.run(read.data, { client, access, scopes, actor, signal, progress });
      return { content: [{ type: 'text', text: JSON.stringify(found) }], structuredContent: { ...found } };
    } catch (error) {
      const trouble = troubleOf(error);
      if (trouble.code === 'internal' && !signal.aborted)
        say(`${tool.name} failed: ${error instanceof Error ? error.stack : String(error)}`);
      return troubleResult(trouble);
    }
  }

  const transport = new StdioServerTransport(input, output, { maxBufferSize: MCP_SERVER_BOUNDS.messageMaxBytes });
  const closed = new Promise<void>((resolve) => {
    server.onclose = resolve;
    for (const event of ['end', 'close', 'error']) input.once(event, () => resolve());
    output.once('error', () => resolve());
  });
  void closed.then(() => gone.abort(new Error('the client has gone')));
  server.onerror = (error) => say(`what the client sent could not be taken: ${error.message.slice(0, 500)}`);
  await server.connect(transport);
  return {
    closed,
    stop: async () => {
      gone.abort(new Error('the server stops'));
      await server.close();
    },
  };
}

function unknownTool(name: string, offered: ReadonlyMap<string, McpTool>): string {
  const withheld = ALL_TOOLS.find((tool) => tool.name === name);
  const why = withheld ? `needs the scope ${withheld.scope}, which this server was started without` : 'is no tool here';
  return `${JSON.stringify(name.slice(0, 64))} ${why}; there are ${[...offered.keys()].join(', ')}`;
}

function described({ name, title, description, scope, input, output, destructive, idempotent }: McpTool): Tool {
  const readOnly = scope === 'read';
  return {
    name,
    title,
    description,
    inputSchema: z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }) as Tool['inputSchema'],
    outputSchema: z.toJSONSchema(output, { io: 'output', unrepresentable: 'any' }) as NonNullable<Tool['outputSchema']>,
    annotations: {
      title,
      readOnlyHint: readOnly,
      destructiveHint: destructive ?? false,
      idempotentHint: readOnly || (idempotent ?? false),
      // Models and tools of sessions reach whatever they reach.
      openWorldHint: !readOnly,
    },
  };
}
