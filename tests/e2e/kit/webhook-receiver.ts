/** A receiver of webhooks on loopback: it checks signatures by itself, knowing nothing of the code that makes them. */
import { createHmac, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One delivery as it came. */
export interface Delivery {
  readonly id: string;
  readonly isSigned: boolean;
  readonly body: { readonly type: string; readonly data: Readonly<Record<string, unknown>> };
}

/** A receiver that runs. */
export interface WebhookReceiver {
  readonly url: string;
  /** `whsec_…`. */
  readonly secret: string;
  readonly deliveries: readonly Delivery[];
  stop(): Promise<void>;
}

/** Starts one that answers with these statuses in turn, and with the last of them from then on. */
export async function receiveWebhooks(...statuses: readonly number[]): Promise<WebhookReceiver> {
  const key = randomBytes(32);
  const deliveries: Delivery[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const id = String(request.headers['webhook-id']);
    const signed = `${id}.${request.headers['webhook-timestamp']}.${body}`;
    const expected = `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
    const status = statuses[Math.min(deliveries.length, statuses.length - 1)] ?? 204;
    deliveries.push({ id, isSigned: request.headers['webhook-signature'] === expected, body: JSON.parse(body) });
    response.writeHead(status, status === 302 ? { location: 'http://127.0.0.1:1/' } : {}).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/cox`,
    secret: `whsec_${key.toString('base64')}`,
    deliveries,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
