/**
 * Connections on which nobody is answered at the moment: kept for a next request, opened ahead by a browser, or in the middle of
 * their headers. Node calls those idle alone that have had a request, and a gateway that stops would wait for the others.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Of one server, from when it is made. */
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

  /** Ends them. */
  close(): void {
    for (const socket of this.#unused) socket.destroy();
  }
}
