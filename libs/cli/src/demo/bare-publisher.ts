/**
 * A bare NATS client: a socket and three lines of the protocol
 * (https://docs.nats.io/reference/reference-protocols/nats-protocol). It uses no code of Coxswain, to show that any
 * program that can publish can steer.
 */
import { connect } from 'node:net';

const TIMEOUT_MS = 5_000;
const DEFAULT_PORT = 4_222;

/**
 * Publishes one text and resolves when the server has received it. Rejects with the error of the socket or of the
 * server, or after five seconds without traffic.
 */
export function publishBare(url: string, token: string, subject: string, text: string): Promise<void> {
  const { hostname, port } = new URL(url.replace(/^nats:/, 'http:'));
  const payload = Buffer.from(text, 'utf8');
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port || DEFAULT_PORT), hostname);
    let heard = '';
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error('the server did not answer')));
    socket.on('error', reject);
    socket.on('data', (chunk) => {
      heard += chunk.toString('utf8');
      if (heard.startsWith('INFO ')) {
        const hello = { verbose: false, pedantic: true, auth_token: token, lang: 'bare', version: '0' };
        socket.write(`CONNECT ${JSON.stringify(hello)}\r\nPUB ${subject} ${payload.length}\r\n`);
        socket.write(payload);
        // The answer to the ping proves that the server has received everything before it.
        socket.write('\r\nPING\r\n');
        heard = '';
      } else if (heard.includes('-ERR')) {
        socket.destroy(new Error(heard.trim()));
      } else if (heard.includes('PONG')) {
        socket.end();
        resolve();
      }
    });
  });
}
