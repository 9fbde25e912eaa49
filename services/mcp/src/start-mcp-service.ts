/** Serves sessions as tools of one MCP client, over a pair of streams. */
import type { Readable, Writable } from 'node:stream';
import type { Client } from '@coxswain/client';
import { cutText, problemOf, readStrictly, VERSION } from '@coxswain/protocol';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  type Tool,
} from '@modelcontextprotocol/sdk/types.js';
import * as z from 'zod';
import { ALL_TOOLS } from './all-tools.ts';
import { MCP_SERVER_BOUNDS } from './mcp-server-bounds.ts';
import type { McpTool } from './mcp-tool.ts';
import type { McpScope, SessionsAccess } from './sessions-access.ts';
import { troubleOf, troubleResult } from './tool-trouble.ts';
import { listTranscripts, readTranscript, sessionOfUri, TRANSCRIPT_TEMPLATE } from './transcripts.ts';

/** Options of the MCP service. */
export interface McpServiceOptions {
  readonly access: SessionsAccess;
  /** Scopes of the client. Tools that need another scope are not offered. */
  readonly scopes: ReadonlySet<McpScope>;
  /** Streams of messages from and to the client. No other output may be written to `output`. */
  readonly input: Readable;
  readonly output: Writable;
  /** Reports internal errors and unreadable input to the operator. */
  say(problem: string): void;
}

/** A running server. */
export interface McpService {
  /** Resolves when the client has disconnected (`gone`), or has sent a message above the size limit (`too_long`). */
  readonly closed: Promise<'gone' | 'too_long'>;
  /** Cancels in-flight calls and stops. Sessions continue. */
  stop(): Promise<void>;
}

const INSTRUCTIONS =
  'Coxswain runs durable agent sessions that can be steered while they work. start_session returns at once; wait_for returns ' +
  'when a session has ended or waits for an approval; steer sends a message into a running session; get_result returns its answer. ' +
  'Sessions continue after you disconnect.';

/** The error code of the MCP specification; the SDK has no constant for it. */
const RESOURCE_NOT_FOUND = -32_002;
const NOT_THERE: ReadonlySet<string> = new Set(['session_not_found', 'session_deleted']);

/** Starts to serve the client. */
export async function startMcpService(options: McpServiceOptions): Promise<McpService> {
  const { access, scopes, input, output, say } = options;
  const offered = new Map(ALL_TOOLS.filter(({ scope }) => scopes.has(scope)).map((tool) => [tool.name, tool]));
  const server = new Server(
    { name: 'coxswain', title: 'Coxswain', version: VERSION },
    { capabilities: { tools: {}, ...(scopes.has('read') ? { resources: {} } : {}) }, instructions: INSTRUCTIONS },
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
        message: `${atOnce} calls are already in progress; wait for some of them`,
      });
    const token = _meta?.progressToken;
    let told = 0;
    const progress = (message: string) => {
      if (token === undefined) return;
      told++;
      const params = { progressToken: token, progress: told, message };
      // The client may have disconnected.
      sendNotification({ method: 'notifications/progress', params }).catch(() => undefined);
    };
    atOnce++;
    try {
      return await call(tool, params.arguments ?? {}, AbortSignal.any([signal, gone.signal]), progress);
    } finally {
      atOnce--;
    }
  });

  if (scopes.has('read')) {
    server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [TRANSCRIPT_TEMPLATE] }));
    server.setRequestHandler(ListResourcesRequestSchema, ({ params }, { signal }) =>
      look(signal, (client) => listTranscripts(client, params?.cursor)),
    );
    server.setRequestHandler(ReadResourceRequestSchema, ({ params }, { signal }) => {
      const id = sessionOfUri(params.uri);
      if (id === null)
        throw new McpError(
          RESOURCE_NOT_FOUND,
          `resources have the form ${TRANSCRIPT_TEMPLATE.uriTemplate}, not ${cutText(params.uri, 256)}`,
        );
      return look(signal, (client) => readTranscript(client, id));
    });
  }

  /** Handles a request for resources. Errors become protocol errors, because resources have no other error result. */
  async function look<T>(signal: AbortSignal, task: (client: Client) => Promise<T>): Promise<T> {
    if (atOnce >= MCP_SERVER_BOUNDS.callsAtOnceMax)
      throw new McpError(ErrorCode.InternalError, `too_many_queries: ${atOnce} calls are already in progress`);
    atOnce++;
    try {
      return await task(await access.client(AbortSignal.any([signal, gone.signal])));
    } catch (error) {
      const { code, message } = troubleOf(error);
      if (code === 'internal') say(`a resource was not read: ${error instanceof Error ? error.stack : String(error)}`);
      const number = NOT_THERE.has(code) ? RESOURCE_NOT_FOUND : ErrorCode.InternalError;
      throw new McpError(number, `${code}: ${message}`, { code });
    } finally {
      atOnce--;
    }
  }

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
  let overLong = false;
  const closed = new Promise<'gone' | 'too_long'>((resolve) => {
    const end = () => resolve(overLong ? 'too_long' : 'gone');
    server.onclose = end;
    for (const event of ['end', 'close', 'error']) input.once(event, end);
    output.once('error', end);
  });
  void closed.then(() => gone.abort(new Error('the client has disconnected')));
  server.onerror = (error) => {
    overLong ||= error.message.startsWith('ReadBuffer exceeded');
    say(`the input of the client is invalid: ${overLong ? TOO_LONG : whyUnreadable(error)}`);
  };
  await server.connect(transport);
  return {
    closed,
    stop: async () => {
      gone.abort(new Error('the server stops'));
      await server.close();
    },
  };
}

const TOO_LONG = `a message has more than ${MCP_SERVER_BOUNDS.messageMaxBytes} bytes; the server ends, its sessions continue`;

/** The reason in one line: the library's messages have many lines. */
function whyUnreadable(error: Error): string {
  if (error.name === 'ZodError') return 'a line is JSON, but not a JSON-RPC 2.0 message';
  if (error instanceof SyntaxError) return `a line is not JSON: ${cutText(error.message, 200)}`;
  return cutText(error.message, 500);
}

function unknownTool(name: string, offered: ReadonlyMap<string, McpTool>): string {
  const withheld = ALL_TOOLS.find((tool) => tool.name === name);
  const why = withheld
    ? `needs the scope ${withheld.scope}, which this server does not have (--scope)`
    : 'is not a tool of this server';
  return `${JSON.stringify(cutText(name, 64))} ${why}; the tools are ${[...offered.keys()].join(', ')}`;
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
      // The models and tools of sessions may access external systems.
      openWorldHint: !readOnly,
    },
  };
}
