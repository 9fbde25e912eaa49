/** One connection to one MCP server: an initialised client of the SDK on a transport, with its list of tools. */
import { resolve } from 'node:path';
import { JsonObject, type McpServer, VERSION } from '@coxswain/protocol';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport, StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  ListToolsResultSchema,
  type LoggingMessageNotification,
  LoggingMessageNotificationSchema,
  type Tool,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { expandVariables, type HostEnvironment, withoutValues } from './expand-variables.ts';
import { type AnswerWatch, HttpAnswers } from './http-answers.ts';
import { MCP_BOUNDS } from './mcp-bounds.ts';
import { causeOf, isNetworkError } from './network-error.ts';
import { createSameOriginFetch } from './same-origin-fetch.ts';
import { StdioServer } from './stdio-server.ts';

/** Events of an open connection. */
export interface ConnectionEvents {
  readonly onToolsChanged: () => void;
  /** A log message of the server. Values of host variables that it was given are redacted. */
  readonly onLog: (level: LoggingMessageNotification['params']['level'], text: string) => void;
}

/** The specification of a connection. */
export interface ConnectionSpec {
  readonly name: string;
  readonly server: McpServer;
  /** The session's root, from which a relative `cwd` starts. */
  readonly root: string;
  readonly hostEnv: HostEnvironment;
  readonly startTimeoutMs: number;
  /** Maximum size of the list of tools as JSON, with all its pages. */
  readonly listMaxBytes: number;
  /** The `fetch` for requests to the server; by default the system's. */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

/** An open or closed connection. */
export interface Connection {
  readonly client: Client;
  /** The reason why the connection is lost, as the rest of a sentence; null while no loss is known. */
  lost(): string | null;
  /** The server's last output besides messages, redacted; empty without output. */
  lastOutput(): string;
  /** Redacts the values of host variables that the server was given. */
  redact(text: string): string;
  /** Watches one call; see {@link AnswerWatch}. */
  watch(key: string): AnswerWatch;
  /** Closes the connection. Never rejects. Returns a redacted sentence for each part that could not be closed. */
  close(): Promise<readonly string[]>;
}

/** A server could not be started, or did not answer. The message quotes it. */
export class ServerStartError extends Error {
  override readonly name = 'ServerStartError';
}

/** Connects, initialises and lists the tools within `startTimeoutMs`. Throws {@link ServerStartError}. */
export async function connect(
  spec: ConnectionSpec,
  events: ConnectionEvents,
  signal: AbortSignal,
): Promise<{ readonly connection: Connection; readonly tools: readonly Tool[] }> {
  const deadline = AbortSignal.timeout(spec.startTimeoutMs);
  let connection: (Connection & { readonly transport: Transport }) | null = null;
  try {
    connection = 'command' in spec.server ? overStdio(spec, spec.server) : overHttp(spec, spec.server);
    const { client, transport, redact } = connection;
    client.setNotificationHandler(ToolListChangedNotificationSchema, events.onToolsChanged);
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params: { level, data } }) =>
      events.onLog(level, redact(typeof data === 'string' ? data : (JSON.stringify(data) ?? ''))),
    );
    const until = AbortSignal.any([signal, deadline]);
    const timeout = spec.startTimeoutMs;
    await whileAsked(until, (own) => client.connect(transport, { signal: own, timeout }));
    return { connection, tools: await listTools(client, until, spec) };
  } catch (error) {
    const reason = deadline.aborted
      ? `it did not answer within ${spec.startTimeoutMs} ms`
      : signal.aborted
        ? 'it was cancelled'
        : reasonOf(error, connection?.lost() ?? null);
    const unclosed = (await connection?.close()) ?? [];
    // Read after closing, when all output of the server has arrived.
    const words = [reason, connection?.lastOutput() ?? '', ...unclosed].filter((part) => part !== '');
    const message = `the MCP server ${spec.name} could not be started: ${words.join('; ')}`;
    throw new ServerStartError(connection?.redact(message) ?? message);
  }
}

function reasonOf(error: unknown, lost: string | null): string {
  if (lost !== null) return `it ${lost}`;
  if (isNetworkError(error)) return `it cannot be reached: ${causeOf(error)}`;
  const { message } = error as Error;
  // The client's message for a rejected request lacks the HTTP status.
  return error instanceof StreamableHTTPError && (error.code ?? 0) > 0
    ? `it answered with HTTP ${error.code}: ${message}`
    : message;
}

/**
 * Lists the tools, page by page. It does not use the client's method, which compiles every output schema and rejects
 * the whole list if one of them does not compile.
 */
export async function listTools(
  client: Client,
  signal: AbortSignal,
  { startTimeoutMs: timeout, listMaxBytes }: Pick<ConnectionSpec, 'startTimeoutMs' | 'listMaxBytes'>,
): Promise<readonly Tool[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const tools: Tool[] = [];
  let bytes = 0;
  let cursor: string | undefined;
  for (let page = 0; page < MCP_BOUNDS.listPagesMax; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const listed = await whileAsked(signal, (own) =>
      client.request({ method: 'tools/list', params }, ListToolsResultSchema, { signal: own, timeout }),
    );
    bytes += sizeOf(listed);
    if (bytes > listMaxBytes) throw new Error(`its list of tools has more than ${listMaxBytes} bytes`);
    tools.push(...listed.tools);
    if (tools.length > MCP_BOUNDS.serverToolsMax)
      throw new Error(`it lists more than ${MCP_BOUNDS.serverToolsMax} tools`);
    cursor = listed.nextCursor;
    if (cursor === undefined) return tools;
  }
  throw new Error(`its list of tools has more than ${MCP_BOUNDS.listPagesMax} pages`);
}

/** The bytes of a page of a list. One that is nested too deep to be measured counts as the largest message. */
function sizeOf(page: object): number {
  return JsonObject.safeParse(page).success ? Buffer.byteLength(JSON.stringify(page)) : MCP_BOUNDS.messageMaxBytes;
}

function newClient(): Client {
  return new Client({ name: 'coxswain', version: VERSION }, { capabilities: {} });
}

function overStdio(
  { name, root, hostEnv }: ConnectionSpec,
  server: Extract<McpServer, { command: string }>,
): Connection & { transport: Transport } {
  const used = new Map<string, string>();
  const redact = (text: string) => withoutValues(text, used);
  const transport = new StdioServer({
    command: server.command,
    args: server.args,
    cwd: resolve(root, server.cwd ?? '.'),
    env: expandVariables(server.env ?? {}, hostEnv, 'env', used),
    redact,
  });
  return {
    client: newClient(),
    transport,
    lost: () => transport.end,
    lastOutput: () => transport.lastOutput,
    redact,
    // When the process ends, the client rejects its pending requests.
    watch: () => ({ lost: new Promise<never>(() => {}), done: () => {} }),
    async close() {
      await transport.close();
      return transport.isRunning ? [`the MCP server ${name} (process ${transport.pid}) could not be ended`] : [];
    },
  };
}

function overHttp(
  { name, hostEnv, startTimeoutMs, fetch }: ConnectionSpec,
  server: Extract<McpServer, { url: string }>,
): Connection & { transport: Transport } {
  const used = new Map<string, string>();
  const redact = (text: string) => withoutValues(text, used);
  const answers = new HttpAnswers(startTimeoutMs, createSameOriginFetch(fetch));
  const transport = new StreamableHTTPClientTransport(new URL(server.url), {
    fetch: answers.fetch,
    requestInit: { headers: expandVariables(server.headers ?? {}, hostEnv, 'headers', used) },
  });
  let closed = false;
  return {
    client: newClient(),
    // The SDK's type is not compatible with exactOptionalPropertyTypes.
    transport: transport as Transport,
    lost: () => (closed ? 'was closed' : null),
    lastOutput: () => '',
    redact,
    watch: (key) => answers.watch(key),
    async close() {
      closed = true;
      const notes = await endSession(transport, name);
      await transport.close();
      return notes.map(redact);
    },
  };
}

/** Ends the session at the server, if it has one. A server that cannot be reached has no session either. */
async function endSession(transport: StreamableHTTPClientTransport, name: string): Promise<readonly string[]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('no answer')), MCP_BOUNDS.stopGraceMs);
  });
  try {
    await Promise.race([transport.terminateSession(), late]);
    return [];
  } catch (error) {
    return isNetworkError(error)
      ? []
      : [`the session at the MCP server ${name} could not be ended: ${(error as Error).message}`];
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Makes one request with a signal that follows another signal until the request ends. The client listens to a request's
 * signal even after the answer, and would ask the server to cancel an answered request.
 */
export async function whileAsked<T>(signal: AbortSignal, ask: (own: AbortSignal) => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const own = new AbortController();
  const ended = new AbortController();
  signal.addEventListener('abort', () => own.abort(signal.reason), { once: true, signal: ended.signal });
  try {
    return await ask(own.signal);
  } finally {
    ended.abort();
  }
}
