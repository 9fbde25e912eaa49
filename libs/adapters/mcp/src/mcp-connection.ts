/**
 * The connection to one MCP server: started, listed, called, restarted after a crash, closed.
 *
 * M1  A call never rejects; a server that dies in the middle of one is an error result with the tail of its stderr.
 * M2  A crashed server is started again at the next call, a bounded number of times.
 */

import type { ToolCall, ToolOutcome } from '@coxswain/ports';
import { type Failure, JsonObject, type McpServer, type ToolDefinition } from '@coxswain/protocol';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type CallToolResult, ErrorCode, McpError, type Tool } from '@modelcontextprotocol/sdk/types.js';
import { expandVariables } from './mcp-config.ts';
import { resultOf } from './mcp-content.ts';

/** Bounds of one connection. */
export interface McpBounds {
  /** Start, handshake and list together. Default 30,000. */
  readonly openTimeoutMs: number;
  /** One call without any progress. Default 3,600,000. */
  readonly callTimeoutMs: number;
  /** Starts of a crashed server in one session. Default 3. */
  readonly restartsMax: number;
}

/** Defaults of {@link McpBounds}. */
export const MCP_BOUNDS: McpBounds = { openTimeoutMs: 30_000, callTimeoutMs: 3_600_000, restartsMax: 3 };

/** Tools of one server, and pages of its list. */
const TOOLS_MAX = 512;
const PAGES_MAX = 64;
const STDERR_TAIL_MAX = 4_096;

/** What a connection is made from. */
export interface McpConnectionSpec {
  readonly name: string;
  readonly server: McpServer;
  /** The session's root: a stdio server's working directory unless it names one. */
  readonly root: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly bounds: McpBounds;
  readonly onListChanged: () => void;
}

/** One server's connection. Made by {@link openMcpConnection}. */
export class McpConnection {
  readonly #spec: McpConnectionSpec;
  #client: Client | null = null;
  #connecting: Promise<void> | null = null;
  #restarts = 0;
  #closed = false;
  #stderr = '';
  /** Our name of each tool, and the server's. */
  #names = new Map<string, string>();
  #tools: readonly ToolDefinition[] = [];

  constructor(spec: McpConnectionSpec) {
    this.#spec = spec;
  }

  /** The server's tools as they are now. */
  get tools(): readonly ToolDefinition[] {
    return this.#tools;
  }

  /** Starts the server and lists its tools. Throws whatever went wrong. */
  async open(signal: AbortSignal): Promise<void> {
    const { openTimeoutMs } = this.#spec.bounds;
    const timed = AbortSignal.any([signal, AbortSignal.timeout(openTimeoutMs)]);
    const client = new Client(
      { name: 'coxswain', version: '0.1.0' },
      { listChanged: { tools: { autoRefresh: false, onChanged: () => void this.#relist() } } },
    );
    const transport = this.#transport();
    client.onclose = () => {
      if (this.#client === client) this.#client = null;
    };
    try {
      await untilAborted(client.connect(transport, { timeout: openTimeoutMs, signal: timed }), timed, openTimeoutMs);
      await this.#list(client, timed);
      this.#client = client;
    } catch (error) {
      await closeQuietly(client, transport);
      throw error;
    }
  }

  /** Runs one call (M1). */
  async call(request: ToolCall, signal: AbortSignal): Promise<ToolOutcome> {
    const client = await this.#connected(signal);
    if (client instanceof Error) return textResult('unavailable', this.#explain(client), 'tool_unavailable');
    try {
      const answer = await client.callTool(
        { name: this.#names.get(request.tool) ?? request.tool, arguments: request.args },
        undefined,
        {
          signal,
          timeout: this.#spec.bounds.callTimeoutMs,
          resetTimeoutOnProgress: true,
          onprogress: ({ progress, total, message }) =>
            request.onProgress(message ?? (total === undefined ? `${progress}` : `${progress} of ${total}`)),
        },
      );
      const result = resultOf(answer as CallToolResult);
      return { status: result.is_error ? 'error' : 'ok', result };
    } catch (error) {
      if (signal.aborted) return textResult('cancelled', 'Cancelled; the server was told.', 'tool_interrupted');
      const died = error instanceof McpError && error.code === ErrorCode.ConnectionClosed;
      return textResult(
        'error',
        died ? this.#explain(error) : (error as Error).message,
        died ? 'mcp_server_failed' : 'tool_failed',
      );
    }
  }

  /** Ends the connection and, on stdio, the server. Never rejects; says what could not be ended. */
  async close(): Promise<readonly string[]> {
    this.#closed = true;
    const client = this.#client;
    this.#client = null;
    try {
      await client?.close();
      return [];
    } catch (error) {
      return [`MCP server ${this.#spec.name}: ${(error as Error).message}`];
    }
  }

  /** What went wrong with the server, with the tail of its stderr. */
  failure(error: Error): Failure {
    return { code: 'mcp_server_failed', message: this.#explain(error) };
  }

  /** The live client, starting a crashed server again (M2). */
  async #connected(signal: AbortSignal): Promise<Client | Error> {
    if (this.#client) return this.#client;
    if (this.#closed) return new Error('its connection is closed');
    if (!this.#connecting) {
      if (this.#restarts >= this.#spec.bounds.restartsMax)
        return new Error(`it ended, and was started again ${this.#restarts} times already`);
      this.#restarts++;
      this.#connecting = this.open(signal).finally(() => {
        this.#connecting = null;
      });
    }
    try {
      await this.#connecting;
    } catch (error) {
      return error as Error;
    }
    return this.#client ?? new Error('it ended as soon as it was started');
  }

  #transport(): Transport {
    const { server, root, env } = this.#spec;
    if ('url' in server) {
      return new StreamableHTTPClientTransport(new URL(server.url), {
        requestInit: { headers: expandVariables(server.headers ?? {}, env) },
        // A server that is gone is an error now, not in minutes.
        reconnectionOptions: {
          maxReconnectionDelay: 2_000,
          initialReconnectionDelay: 200,
          reconnectionDelayGrowFactor: 2,
          maxRetries: 2,
        },
      });
    }
    const transport = new StdioClientTransport({
      command: server.command,
      args: server.args,
      env: { ...getDefaultEnvironment(), ...expandVariables(server.env ?? {}, env) },
      cwd: server.cwd ?? root,
      stderr: 'pipe',
    });
    transport.stderr?.on('data', (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString('utf8')).slice(-STDERR_TAIL_MAX);
    });
    return transport;
  }

  async #list(client: Client, signal?: AbortSignal): Promise<void> {
    const { openTimeoutMs } = this.#spec.bounds;
    const tools: Tool[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < PAGES_MAX && tools.length < TOOLS_MAX; page++) {
      const options = signal ? { signal, timeout: openTimeoutMs } : { timeout: openTimeoutMs };
      const answer = await client.listTools(cursor === undefined ? {} : { cursor }, options);
      tools.push(...answer.tools);
      cursor = answer.nextCursor;
      if (cursor === undefined) break;
    }
    const names = new Map<string, string>();
    this.#tools = tools.slice(0, TOOLS_MAX).map((tool) => {
      const name = freeName(`${this.#spec.name}__${tool.name}`, names);
      names.set(name, tool.name);
      return definitionOf(tool, name, this.#spec.name);
    });
    this.#names = names;
  }

  async #relist(): Promise<void> {
    const client = this.#client;
    if (!client) return;
    try {
      await this.#list(client);
      this.#spec.onListChanged();
    } catch {
      // The list of before stays in use; a server that cannot even be listed shows at its next call.
    }
  }

  #explain(error: Error): string {
    const tail = this.#stderr.trim();
    return `MCP server ${this.#spec.name}: ${error.message}${tail ? `\nIts last words:\n${tail}` : ''}`;
  }
}

function definitionOf(tool: Tool, name: string, server: string): ToolDefinition {
  const { annotations } = tool;
  const schema = JsonObject.safeParse(tool.inputSchema);
  return {
    name,
    description: (tool.description ?? tool.title ?? '').slice(0, 16_384),
    input_schema: schema.success ? schema.data : { type: 'object' },
    source: `mcp:${server}`,
    traits: {
      idempotent: annotations?.idempotentHint === true || annotations?.readOnlyHint === true,
      long_running: false,
      sequential: false,
      terminates: false,
    },
  };
}

// Providers take [A-Za-z0-9_-]{1,128}; two names that would become one are told apart by a number.
function freeName(wanted: string, taken: ReadonlyMap<string, string>): string {
  const base = wanted.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 124);
  if (!taken.has(base)) return base;
  for (let i = 2; ; i++) if (!taken.has(`${base}_${i}`)) return `${base}_${i}`;
}

function textResult(status: ToolOutcome['status'], text: string, code: string): ToolOutcome {
  return { status, result: { content: [{ type: 'text', text }], is_error: true, detail: { code } } };
}

// The handshake of a server that says nothing at all would outlast the request's own time-out on some transports.
async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal, timeoutMs: number): Promise<T> {
  let abandon: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    abandon = () => reject(new Error(`it did not answer within ${timeoutMs} ms, or its start was broken off`));
    if (signal.aborted) abandon();
    else signal.addEventListener('abort', abandon, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    if (abandon) signal.removeEventListener('abort', abandon);
    // Whichever lost the race is over; its rejection has been told already.
    promise.catch(() => undefined);
  }
}

async function closeQuietly(client: Client, transport: Transport): Promise<void> {
  for (const part of [client, transport]) {
    try {
      await part.close();
    } catch {
      // It never was open; why it did not open is what the caller throws.
    }
  }
}
