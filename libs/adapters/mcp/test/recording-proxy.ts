/** An HTTP proxy before an MCP server that records what is posted, and can break the stream of an answer. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** A message that a client has posted. */
export interface Posted {
  readonly method: string;
  readonly params?: Record<string, unknown>;
  readonly headers: IncomingHttpHeaders;
}

/** The proxy. */
export interface RecordingProxy {
  readonly url: string;
  readonly posted: Posted[];
  /** HTTP methods in the order in which they came. */
  readonly requests: string[];
  /** Cuts every answer that is on its way, without a word. */
  cutAnswers(): void;
  /** From now on nobody listens any more. */
  stop(): Promise<void>;
}

/** Starts a proxy on a free port before the server at another. It is stopped when the test is over. */
export async function recordingProxy(upstreamPort: number): Promise<RecordingProxy> {
  const posted: Posted[] = [];
  const requests: string[] = [];
  const open = new Set<ServerResponse>();
  const server = createServer(async (incoming, response) => {
    requests.push(incoming.method ?? '');
    const chunks: Buffer[] = [];
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    if (incoming.method === 'POST') posted.push({ ...JSON.parse(body.toString('utf8')), headers: incoming.headers });
    const { method, url, headers } = incoming;
    const outgoing = request({ host: '127.0.0.1', port: upstreamPort, method, path: url, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      response.flushHeaders();
      open.add(response);
      response.on('close', () => {
        open.delete(response);
        outgoing.destroy();
      });
      answer.on('error', () => response.destroy());
      answer.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    outgoing.end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = async () => {
    server.closeAllConnections();
    if (!server.listening) return;
    server.close();
    await once(server, 'close');
  };
  onTestFinished(stop);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    posted,
    requests,
    cutAnswers: () => {
      for (const response of open) response.destroy();
    },
    stop,
  };
}
