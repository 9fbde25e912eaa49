/** What was let in before a stop, and is answered after it: it is told so as everybody else is, and holds up nothing. */
import { once } from 'node:events';
import { request } from 'node:http';
import type { BusSession, WatchItem } from '@coxswain/client';
import { expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import type { GatewayClient } from '../src/gateway-context.ts';
import { appOnNothing } from './app-on-nothing.ts';

/** An app with one session, which is looked for until it is found, and never says anything. */
async function appThatLooks() {
  let find: (newest: number) => void = () => undefined;
  const found = new Promise<number>((resolve) => {
    find = resolve;
  });
  const lastNumber = vi.fn(() => found);
  // Says nothing, and ends when it is left.
  const records = ({ signal }: { readonly signal: AbortSignal }): AsyncIterable<WatchItem> => ({
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        if (!signal.aborted) await once(signal, 'abort');
        return { done: true, value: undefined };
      },
    }),
  });
  const send = (_verb: string, _body: object, { signal }: { readonly signal: AbortSignal }) =>
    new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason as Error);
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  const session = { id: 's', ref: { tenant: 'default', sessionId: 's' }, lastNumber, records, wire: { send } };
  const made = await appOnNothing({
    clientOf: () => ({ session: () => session as unknown as BusSession }) as unknown as GatewayClient,
    times: { heartbeatMs: 10_000_000, recheckMs: 10_000_000, stallMs: 10_000, waitsEndMs: 0 },
  });
  const url = new URL(await made.app.listen({ host: '127.0.0.1', port: 0 }));
  /** Stops once the session is looked for, and has it found then. */
  const stopMeanwhile = async () => {
    await vi.waitFor(() => expect(lastNumber).toHaveBeenCalled(), { timeout: 20_000 });
    made.stopping.abort();
    find(1);
  };
  return { ...made, url, stopMeanwhile };
}

test.each(['ws', 'inspect'])('a WebSocket at /%s', async (path) => {
  const { app, authorization, url, stopMeanwhile } = await appThatLooks();
  const headers = { host: 'gateway.test', authorization };
  const socket = new WebSocket(`ws://${url.host}/v1/sessions/s/${path}`, { headers });
  const closed = once(socket, 'close');
  await stopMeanwhile();
  const [code, reason] = (await closed) as [number, Buffer];
  expect([code, reason.toString()]).toEqual([1001, 'gateway_stopping']);
  await app.close();
});

test('server-sent events', async () => {
  const { app, authorization, url, stopMeanwhile } = await appThatLooks();
  const asked = fetchAt(url, '/v1/sessions/s/events', { authorization, accept: 'text/event-stream' });
  await stopMeanwhile();
  expect(await asked).toContain('"code":"gateway_stopping"');
  await app.close();
});

test('a receipt that is waited for', async () => {
  const { app, authorization, url, stopMeanwhile } = await appThatLooks();
  const body = '{"body":"x"}';
  const asked = fetchAt(url, '/v1/sessions/s/steer?wait=accepted', { authorization }, body);
  await stopMeanwhile();
  expect(await asked).toContain('"code":"gateway_stopping"');
  await app.close();
});

/** Like fetch, which would not name another host. */
function fetchAt(url: URL, path: string, headers: Record<string, string>, body?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        host: url.hostname,
        port: url.port,
        path,
        method: body === undefined ? 'GET' : 'POST',
        headers: { host: 'gateway.test', 'content-type': 'application/json', ...headers },
      },
      (answer) => {
        let told = '';
        answer.setEncoding('utf8').on('data', (text: string) => {
          told += text;
        });
        answer.once('end', () => resolve(told)).once('error', reject);
      },
    );
    asked.once('error', reject).end(body);
  });
}
