import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Principal } from '../auth/mod.ts';
import { GATEWAY_BOUNDS, type MemoryShare, type MemoryShares } from '../context/mod.ts';

/** The head of a ping or pong from a client. */
const CONTROL_HEAD_BYTES = 6;

/**
 * Counts the memory of the message that a WebSocket is receiving, until it is complete or the connection is closed.
 * @param connection the connection of the WebSocket.
 * @param onFull called when there is no room. The message stays in memory until the connection is closed.
 */
export function countIncompleteMessage(
  memory: MemoryShares,
  principal: Principal,
  socket: WebSocket,
  connection: Duplex,
  onFull: () => void,
): void {
  let bytes = 0;
  let chunkBytes = 0;
  let isControlCounted = false;
  let share: MemoryShare | null = null;
  const set = (counted: number) => {
    bytes = counted;
    share?.release();
    share = bytes < GATEWAY_BOUNDS.socketMessageFromBytes ? null : memory.take(bytes, principal);
    if (bytes >= GATEWAY_BOUNDS.socketMessageFromBytes && share === null) onFull();
  };
  // Before the WebSocket gets the chunk, which may complete a message.
  connection.prependListener('data', (chunk: Buffer) => {
    isControlCounted = false;
    chunkBytes = chunk.length + GATEWAY_BOUNDS.socketChunkBytes;
    set(bytes + chunkBytes);
  });
  // The chunk that ends a frame may contain the start of the next message, and the heads of frames were counted, too.
  const complete = (data: { readonly length: number }) => {
    const left = Math.min(bytes - data.length, chunkBytes);
    set(left < GATEWAY_BOUNDS.socketMessageFromBytes ? 0 : left);
  };
  socket.on('message', (data) => complete(data as Buffer));
  // Pings and pongs may come between the fragments of a message. They occupy nothing.
  const subtractControl = (data: Buffer) => {
    const ofChunk = isControlCounted ? 0 : GATEWAY_BOUNDS.socketChunkBytes;
    isControlCounted = true;
    set(Math.max(0, bytes - data.length - CONTROL_HEAD_BYTES - ofChunk));
  };
  socket.on('ping', subtractControl);
  socket.on('pong', subtractControl);
  socket.once('close', () => share?.release());
}
