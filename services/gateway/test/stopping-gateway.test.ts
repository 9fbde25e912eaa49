/** Requests that were accepted before a stop and answered after it get the problem `gateway_stopping`. */
import { once } from 'node:events';
import { request } from 'node:http';
import type { BusSession } from '@coxswain/client';
import { expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import type { GatewayClient } from '../src/context/mod.ts';
import { appWithoutBus, silence } from './app-without-bus.ts';

/** An app with one silent session, whose look-up ends when the test says so. */
async function appThatLooks() {
  let find: (newest: number) => void = () => undefined;
  const found = new Promise<number>((resolve) => {
    find = resolve;
  });
  const lastNumber = vi.fn(() => found);
  const send = (_verb: string, _body: object, { signal }: { readonly signal: AbortSignal }) =>
    new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason as Error);
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  const session = { id: 's', ref: { tenant: 'default', sessionId: 's' }, lastNumber, records: silence, wire: { send } };
  const made = await appWithoutBus({
    clientOf: () => ({ session: () => session as unknown as BusSession }) as unknown as GatewayClient,
    times: { heartbeatMs: 10_000_000, recheckMs: 10_000_000, stallMs: 10_000, waitsEndMs: 0 },
  });
  const url = new URL(await made.app.listen({ host: '127.0.0.1', port: 0 }));
  /** Stops the gateway during the look-up of the session, which then finds it. */
  const stopMeanwhile = async () => {
    await vi.waitFor(() => expect(lastNumber).toHaveBeenCalled(), { timeout: 20_000 });
    made.stopping.abort();
    find(1);
  };
  return { ...made, url, stopMeanwhile };
}

test.each(['ws', 'inspect'])('a WebSocket at /%s is closed with gateway_stopping', async (path) => {
  const { app, authorization, url, stopMeanwhile } = await appThatLooks();
  const headers = { host: 'gateway.test', authorization };
  const socket = new WebSocket(`ws://${url.host}/v1/sessions/s/${path}`, { headers });
  const closed = once(socket, 'close');
  await stopMeanwhile();
  const [code, reason] = (await closed) as [number, Buffer];
  expect([code, reason.toString()]).toEqual([1001, 'gateway_stopping']);
  await app.close();
});

test('an event stream ends with gateway_stopping', async () => {
  const { app, authorization, url, stopMeanwhile } = await appThatLooks();
  const asked = fetchAt(url, '/v1/sessions/s/events', { authorization, accept: 'text/event-stream' });
  await stopMeanwhile();
  expect(await asked).toContain('"code":"gateway_stopping"');
  await app.close();
});

test('a request that waits for a receipt fails with gateway_stopping', async () => {
  const { app, authorization, url, stopMeanwhile } = await appThatLooks();
  const body = '{"body":"x"}';
  const asked = fetchAt(url, '/v1/sessions/s/steer?wait=accepted', { authorization }, body);
  await stopMeanwhile();
  expect(await asked).toContain('"code":"gateway_stopping"');
  await app.close();
});

/** Like fetch, which cannot set the Host header. */
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
        let received = '';
        answer.setEncoding('utf8').on('data', (text: string) => {
          received += text;
        });
        answer.once('end', () => resolve(received)).once('error', reject);
      },
    );
    asked.once('error', reject).end(body);
  });
}
