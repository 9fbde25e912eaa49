/** A gateway in this process, and what a client without any library of ours does with it. */
import { request } from 'node:http';
import { type GatewayServiceOptions, startGatewayService } from '@coxswain/gateway';
import type { TestBus } from './bus.ts';

/** An answer, read whole. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** As JSON; empty where it is none. */
  readonly body: Record<string, unknown>;
}

/** A gateway that listens. */
export interface GatewayUnderTest {
  readonly url: string;
  readonly port: number;
  /** Of `tester`, who may do everything; empty where the gateway has other tokens. */
  readonly token: string;
  raw(path: string, init?: RequestInit): Promise<Response>;
  send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<HttpAnswer>;
  get(path: string): Promise<HttpAnswer>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<HttpAnswer>;
  /** A request that names another host, which fetch does not let one do. */
  byHost(host: string, path: string): Promise<{ readonly status: number; readonly body: Record<string, unknown> }>;
  stop(): Promise<void>;
}

/** Starts one in this process. */
export async function startGateway(
  bus: Pick<TestBus, 'natsUrl' | 'stateDir'>,
  options: Partial<GatewayServiceOptions> = {},
): Promise<GatewayUnderTest> {
  const service = await startGatewayService({
    nats: { servers: bus.natsUrl },
    stateDir: bus.stateDir,
    log: 'silent',
    ...(options.tokensFile === undefined && options.jwt === undefined ? { startToken: { name: 'tester' } } : {}),
    ...options,
  });
  return { ...clientOf(service.url, service.token ?? ''), port: service.port, stop: () => service.stop() };
}

/** What a client does with a gateway that runs somewhere. */
export function clientOf(url: string, token: string): Omit<GatewayUnderTest, 'stop'> {
  const authorization = `Bearer ${token}`;
  const raw = (path: string, init: RequestInit = {}) =>
    fetch(`${url}${path}`, { ...init, headers: { authorization, ...(init.headers as Record<string, string>) } });
  const send = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const json = body !== undefined && typeof body !== 'string';
    const answer = await raw(path, {
      method,
      headers: { ...(json ? { 'content-type': 'application/json' } : {}), ...headers },
      ...(body === undefined ? {} : { body: json ? JSON.stringify(body) : (body as string) }),
    });
    return { status: answer.status, headers: answer.headers, body: asJson(await answer.text()) };
  };
  const port = Number(new URL(url).port);
  return {
    url,
    port,
    token,
    raw,
    send,
    get: (path) => send('GET', path),
    post: (path, body, headers) => send('POST', path, body, headers),
    byHost: (host, path) =>
      new Promise((resolve, reject) => {
        const asked = request({ port, path, headers: { host, authorization } }, (answer) => {
          let text = '';
          answer.setEncoding('utf8').on('data', (part: string) => {
            text += part;
          });
          answer.once('end', () => resolve({ status: answer.statusCode ?? 0, body: asJson(text) }));
        });
        asked.once('error', reject);
        asked.end();
      }),
  };
}

function asJson(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    // Not JSON: the test looks at the status.
    return {};
  }
}
