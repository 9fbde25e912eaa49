/** Responses to input that never becomes a request: a problem document, then the end of the connection. */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { Problem } from '../context/mod.ts';

/** Error code of an upgrade to a protocol other than WebSocket. */
export const NO_UPGRADE = 'NO_UPGRADE';

/**
 * Sends a problem document and closes the connection.
 * @param headers headers of every response.
 * @returns the code of the problem; null if the client has disconnected.
 */
export function respondToUnreadable(
  error: { readonly code?: string },
  socket: Duplex,
  headers: Readonly<Record<string, string>>,
): string | null {
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
    socket.destroy();
    return null;
  }
  const problem = problemOf(error.code);
  const body = JSON.stringify(problem.document);
  const head = {
    ...headers,
    'content-type': 'application/problem+json',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('')}\r\n${body}`, () =>
    socket.destroy(),
  );
  return problem.code;
}

/**
 * Rejects a request with an unsupported `expect` header (417). Node handles `100-continue` itself.
 * @param headers headers of every response.
 * @returns the code of the problem.
 */
export function rejectExpectation(
  { headers: { expect = '' } }: IncomingMessage,
  reply: ServerResponse,
  headers: Readonly<Record<string, string>>,
): string {
  const expectation = JSON.stringify(expect.slice(0, 128));
  const message = `expect: ${expectation} is not supported; only 100-continue is`;
  const problem = new Problem('expectation_failed', message, { field: 'expect' });
  const body = JSON.stringify(problem.document);
  // Close the connection, because the body of the request is not read.
  reply.writeHead(problem.status, {
    ...headers,
    'content-type': 'application/problem+json',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  });
  reply.end(body);
  return problem.code;
}

function problemOf(code: string | undefined): Problem {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Problem('headers_too_large', 'the request headers are larger than 16 KiB');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Problem('request_too_slow', 'the request did not arrive completely in time');
    case NO_UPGRADE:
      return new Problem(
        'request_unreadable',
        'the request asks for another protocol; use HTTP/1.1 or WebSockets (curl: --http1.1)',
      );
    default:
      return new Problem('request_unreadable', 'the request is not valid HTTP');
  }
}
