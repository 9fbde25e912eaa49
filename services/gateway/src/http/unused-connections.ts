/**
 * Connections without an active request: kept alive, opened ahead by a browser, or in the middle of headers. For Node,
 * only those that have had a request are idle. A stopping gateway would wait for the others.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Tracks the unused connections of a server, from its creation on. */
export class UnusedConnections {
  readonly #unused = new Set<Socket>();

  constructor(server: Server) {
    server.on('connection', (socket) => {
      this.#unused.add(socket);
      socket.once('close', () => this.#unused.delete(socket));
    });
    server.on('request', ({ socket }: IncomingMessage, answer: ServerResponse) => {
      this.#unused.delete(socket);
      answer.once('close', () => {
        if (!socket.destroyed) this.#unused.add(socket);
      });
    });
    server.on('upgrade', ({ socket }) => this.#unused.delete(socket));
  }

  /** Closes the unused connections. */
  close(): void {
    for (const socket of this.#unused) socket.destroy();
  }
}
