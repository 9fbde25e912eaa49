/** A WebSocket at a gateway, as a page opens it. */
import { WebSocket } from 'ws';
import type { GatewayUnderTest } from './gateway.ts';
import { until } from './until.ts';

/** Opens one, and keeps what comes. */
export function openSocket<Message>(on: GatewayUnderTest, path: string, { token = on.token, origin = on.url } = {}) {
  const socket = new WebSocket(`ws://127.0.0.1:${on.port}${path}`, ['coxswain.v1', `bearer.${token}`], { origin });
  const messages: Message[] = [];
  let closed: { code: number; reason: string } | null = null;
  let refused: number | null = null;
  socket.on('message', (data) => messages.push(JSON.parse(String(data)) as Message));
  socket.on('close', (code, reason) => {
    closed = { code, reason: String(reason) };
  });
  socket.on('error', () => undefined);
  socket.on('unexpected-response', (_request, answer) => {
    refused = answer.statusCode ?? 0;
    socket.terminate();
  });
  return {
    socket,
    messages,
    closed: () => closed,
    /** The status of a refusal; null where there was none. */
    refused: () => refused,
    send: (message: object) => socket.send(JSON.stringify(message)),
    seen: (what: string, is: (message: Message) => boolean) => until(what, () => messages.find(is)),
  };
}
