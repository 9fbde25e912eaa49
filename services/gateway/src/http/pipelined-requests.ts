/**
 * Requests that a client sends before the response to an earlier one on the same connection (HTTP pipelining). If the
 * connection is lost, Node closes only the response whose turn it is. A queued response would get no `close` event, and
 * its request would keep its memory, its slot and its wait.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Closes also the queued responses of a connection that is lost. */
export function closeQueuedResponses(server: Server): void {
  const queues = new WeakMap<Socket, Set<ServerResponse>>();
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    // A response has its socket once it is its turn.
    if (response.socket !== null) return;
    const queue = queues.get(socket) ?? new Set<ServerResponse>();
    if (!queues.has(socket)) {
      queues.set(socket, queue);
      socket.once('close', () => closeAll(queue));
    }
    queue.add(response);
    response.once('close', () => queue.delete(response));
  });
}

function closeAll(queue: ReadonlySet<ServerResponse>): void {
  for (const response of queue) {
    if (response.socket !== null) continue;
    response.destroy();
    response.emit('close');
  }
}
