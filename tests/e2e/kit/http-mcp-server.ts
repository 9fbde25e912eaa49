/** An MCP server over Streamable HTTP in this process, whose one tool greets; it notes who has asked. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { onTestFinished } from 'vitest';

/** One that listens until its test is over. */
export interface HttpMcpServer {
  readonly url: string;
  /** What requests have had as their `authorization`, each once. */
  readonly keys: ReadonlySet<string | undefined>;
}

/** Listens on a free port of this machine. */
export async function httpMcpServer(): Promise<HttpMcpServer> {
  const keys = new Set<string | undefined>();
  const listening = createServer((request, response) => {
    keys.add(request.headers.authorization);
    // Without sessions of its own each request is answered by a server of its own.
    const server = greeter();
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    response.once('close', () => void transport.close());
    server
      .connect(transport as Parameters<Server['connect']>[0])
      .then(() => transport.handleRequest(request, response))
      .catch((error: Error) => response.destroy(error));
  });
  listening.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  onTestFinished(() => {
    listening.closeAllConnections();
    listening.close();
  });
  return { url: `http://127.0.0.1:${(listening.address() as AddressInfo).port}/mcp`, keys };
}

function greeter(): Server {
  const server = new Server({ name: 'greeter', version: '1' }, { capabilities: { tools: {} } });
  const inputSchema = { type: 'object' as const, properties: { name: { type: 'string' } }, required: ['name'] };
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [{ name: 'greet', description: 'Greets.', inputSchema }],
  }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
    content: [{ type: 'text', text: `hello ${String(params.arguments?.name)}` }],
  }));
  return server;
}
