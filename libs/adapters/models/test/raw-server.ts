/** A bare HTTP server for what no well-behaved mock does. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface RawServer {
  readonly url: string;
  /** Bodies of the requests so far, parsed. */
  readonly bodies: unknown[];
  close(): Promise<void>;
}

/** Answers the nth request (from 1) with the handler. */
export async function rawServer(
  handle: (response: ServerResponse, n: number, request: IncomingMessage) => void,
): Promise<RawServer> {
  const bodies: unknown[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      bodies.push(JSON.parse(Buffer.concat(chunks).toString('utf8') || 'null'));
      handle(response, bodies.length, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Begins a stream of server-sent events. */
export function beginStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
}

/** One server-sent event; an event name only where its JSON has a type, as providers do. */
export function sse(data: unknown): string {
  const type = (data as { type?: unknown }).type;
  return `${typeof type === 'string' ? `event: ${type}\n` : ''}data: ${JSON.stringify(data)}\n\n`;
}
