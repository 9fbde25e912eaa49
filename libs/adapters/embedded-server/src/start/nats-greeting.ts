import { connect } from 'node:net';

/** The required part of the INFO line that a server sends first. */
export interface NatsGreeting {
  /** For example `2.15.1`. */
  readonly version: string;
  readonly jetStream: boolean;
  /** In bytes. */
  readonly maxPayload: number;
}

/**
 * Connects as a client, with the token, and waits for the answer to a PING. The answer proves that the server accepts
 * the token. Protocol: https://docs.nats.io/reference/reference-protocols/nats-protocol
 *
 * @throws Error if the server is unreachable, rejects the token, or does not answer within `timeoutMs` milliseconds.
 */
export function greetServer(host: string, port: number, token: string, timeoutMs: number): Promise<NatsGreeting> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    let received = '';
    let greeting: NatsGreeting | undefined;
    const timer = setTimeout(() => finish(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
    const finish = (result: NatsGreeting | Error) => {
      clearTimeout(timer);
      socket.destroy();
      if (result instanceof Error) reject(result);
      else resolve(result);
    };
    socket.setEncoding('utf8');
    socket.once('error', finish).once('close', () => finish(new Error('the server closed the connection')));
    socket.on('data', (text: string) => {
      received += text;
      const lines = received.split('\r\n');
      received = lines.pop() ?? '';
      for (const line of lines) {
        if (line.startsWith('INFO ')) {
          greeting = readInfo(line.slice('INFO '.length));
          const options = { verbose: false, pedantic: false, auth_token: token, lang: 'node', name: 'cox-start' };
          socket.write(`CONNECT ${JSON.stringify(options)}\r\nPING\r\n`);
        } else if (line === 'PONG' && greeting) {
          finish(greeting);
        } else if (line.startsWith('-ERR')) {
          finish(new Error(line));
        }
      }
    });
  });
}

function readInfo(json: string): NatsGreeting {
  const info = JSON.parse(json) as { version?: unknown; jetstream?: unknown; max_payload?: unknown };
  return { version: String(info.version), jetStream: info.jetstream === true, maxPayload: Number(info.max_payload) };
}
