/** What the app decides before anything is asked of the bus. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { NoHostError, ReceiptTimeoutError, type Session } from '@coxswain/client';
import type { EndedSpan } from '@coxswain/protocol';
import { FORMAT_VERSIONS, RequestRates } from '@coxswain/session';
import { describe, expect, test, vi } from 'vitest';
import { SessionFeeds } from '../src/feed/session-feeds.ts';
import type { GatewayClient } from '../src/gateway-context.ts';
import { createMetrics } from '../src/gateway-metrics.ts';
import type { KnownSessions } from '../src/known-sessions.ts';
import { Problem, problemFrom } from '../src/problem.ts';
import { appOnNothing, connected, SILENT } from './app-on-nothing.ts';

const host = 'gateway.test';

test('every answer keeps itself from caches, guesses and frames', async () => {
  const { app, authorization } = await appOnNothing();
  for (const url of ['/healthz', '/v1/sessions', '/nowhere']) {
    const { headers } = await app.inject({ url, headers: { host, authorization } });
    expect(headers, url).toMatchObject({
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    });
  }
});

test('whoever has a token is told whose it is, whatever it may; nobody else is', async () => {
  const end = Date.parse('2026-02-01T00:00:00Z');
  const holder = { name: 'alice', tenant: 'team', scopes: new Set(['steer' as const]), expiresAt: end };
  const { app } = await appOnNothing({
    authenticator: { authenticate: async (token) => (token === 't' ? holder : null) },
  });
  const ask = (headers: Record<string, string>) => app.inject({ url: '/v1/whoami', headers: { host, ...headers } });
  expect((await ask({ authorization: 'Bearer t' })).json()).toEqual({
    name: 'alice',
    tenant: 'team',
    scopes: ['steer'],
    expires_at: '2026-02-01T00:00:00.000Z',
  });
  expect((await ask({ authorization: 'Bearer other' })).json()).toMatchObject({ status: 401, code: 'unauthorized' });
  expect((await ask({})).json()).toMatchObject({ status: 401, code: 'unauthorized' });
});

test('what can be started is what the gateway was given; without a folder of its own that is nothing', async () => {
  const bare = await appOnNothing();
  const ask = ({ app, authorization }: typeof bare, method: 'GET' | 'POST', url: string) =>
    app.inject({ method, url, headers: { host, authorization } });
  expect((await ask(bare, 'GET', '/v1/start-options')).json()).toEqual({ folder: null, personas: [], has_demo: false });
  expect((await ask(bare, 'POST', '/v1/demo')).json()).toMatchObject({ status: 404, code: 'not_found' });
  const demo = { prompt: 'Play.', root: '/d', model: 'scripted//d/script.yaml', persona: { name: 'clerk' } };
  const options = { folder: '/work', personas: [], has_demo: true };
  const given = await appOnNothing({ starts: { options: async () => options, prepareDemo: async () => demo } });
  expect((await ask(given, 'GET', '/v1/start-options')).json()).toEqual(options);
  expect((await ask(given, 'POST', '/v1/demo')).json()).toEqual(demo);
});

test('a session that says nothing has a stream with heartbeats', async () => {
  const records = ({ signal }: { readonly signal: AbortSignal }) => ({
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        if (!signal.aborted) await once(signal, 'abort');
        return { done: true, value: undefined };
      },
    }),
  });
  const session = { id: 's', ref: { tenant: 'default', sessionId: 's' }, lastNumber: async () => 0, records };
  const { app, authorization, stopping } = await appOnNothing({
    clientOf: () => ({ session: () => session as unknown as Session }) as unknown as GatewayClient,
    times: { heartbeatMs: 5, recheckMs: 10_000, stallMs: 10_000, waitsEndMs: 10_000 },
    known: { expect: async () => undefined } as unknown as KnownSessions,
  });
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const headers = { host, authorization, accept: 'text/event-stream' };
  const [answer] = (await once(
    request({ host: '127.0.0.1', port, path: '/v1/sessions/s/events', headers }).end(),
    'response',
  )) as [IncomingMessage];
  let beats = 0;
  for await (const piece of answer.setEncoding('utf8')) {
    beats += String(piece).split(': still here').length - 1;
    if (beats >= 3) break;
  }
  expect(beats).toBeGreaterThanOrEqual(3);
  stopping.abort();
  await app.close();
});

test('more requests than are taken are told when the next will be', async () => {
  const { app, authorization } = await appOnNothing({ rates: new RequestRates(2, 0.1, 10, () => 0) });
  const statuses = [];
  for (let i = 0; i < 3; i++)
    statuses.push(await app.inject({ url: '/v1/sessions', headers: { host, authorization } }));
  expect(statuses.map(({ statusCode }) => statusCode)).toEqual([200, 200, 429]);
  expect(statuses.at(-1)?.headers['retry-after']).toBe('10');
  expect(statuses.at(-1)?.json()).toMatchObject({ code: 'rate_limited' });
});

test.each([
  ['/v1/sessions', 'limit', 500],
  ['/v1/approvals', 'limit', 500],
  ['/v1/sessions/one/events', 'limit', 1_000],
])('of %s, %s is a whole number in digits alone, once', async (url, field, max) => {
  const { app, authorization } = await appOnNothing();
  const ask = (query: string) => app.inject({ url: `${url}?${query}`, headers: { host, authorization } });
  for (const written of ['1e2', '0x10', '%205', '+5', '05', '1.0', '', '0', '-1', `${max + 1}`, '9'.repeat(400)]) {
    const answer = await ask(`${field}=${written}`);
    expect(answer.json(), written).toMatchObject({ status: 400, code: 'invalid_field', field });
    expect(answer.json().detail, written).toContain(`must be a whole number from 1 to ${max}`);
  }
  expect((await ask(`${field}=1&${field}=2`)).json()).toMatchObject({ status: 400, code: 'invalid_field', field });
  expect((await ask(`${field}=${max}`)).json().code).not.toBe('invalid_field');
});

test('a gateway that is about to end takes nothing new', async () => {
  const { app, authorization, stopping } = await appOnNothing();
  stopping.abort();
  const answer = await app.inject({ url: '/v1/sessions', headers: { host, authorization } });
  expect(answer.statusCode).toBe(503);
  expect(answer.json()).toMatchObject({ code: 'gateway_stopping' });
  expect(answer.headers['retry-after']).toBe('1');
});

test('a bus that is away makes it unready, and not dead', async () => {
  const { app } = await appOnNothing();
  const alive = await app.inject({ url: '/healthz', headers: { host } });
  expect(alive.statusCode).toBe(200);
  expect(alive.json()).toEqual({ status: 'ok', ...FORMAT_VERSIONS });
  const ready = await app.inject({ url: '/readyz', headers: { host } });
  expect(ready.statusCode).toBe(503);
  expect(ready.json()).toMatchObject({ code: 'nats_unreachable' });
});

test('what fails without a code is a 500 that says nothing of how', async () => {
  const { app, authorization } = await appOnNothing({
    clientOf: () => {
      throw new Error('secret: the colour of the safe');
    },
  });
  const answer = await app.inject({ url: '/v1/sessions', headers: { host, authorization } });
  expect(answer.statusCode).toBe(500);
  expect(answer.json()).toMatchObject({ code: 'internal' });
  expect(answer.body).not.toContain('safe');
});

test('keys for tokens that cannot be had are not the token’s fault', async () => {
  const { app } = await appOnNothing({
    authenticator: { authenticate: () => Promise.reject(new Problem('auth_unavailable', 'no keys')) },
  });
  const answer = await app.inject({ url: '/v1/sessions', headers: { host, authorization: 'Bearer x' } });
  expect(answer.statusCode).toBe(503);
});

test('a tenant whose key the gateway does not have is not served', async () => {
  const { app, authorization } = await appOnNothing({ clientOf: () => null });
  const answer = await app.inject({ url: '/v1/sessions', headers: { host, authorization } });
  expect(answer.statusCode).toBe(403);
  expect(answer.json()).toMatchObject({ code: 'not_permitted' });
});

test('a token in an address is no token', async () => {
  const { app, authorization } = await appOnNothing();
  const token = authorization.slice('Bearer '.length);
  for (const query of [`access_token=${token}`, `token=${token}`]) {
    const answer = await app.inject({ url: `/v1/sessions?${query}`, headers: { host } });
    expect(answer.statusCode).toBe(401);
  }
});

test('a page of a site that is allowed may ask first, and is answered by its name alone', async () => {
  const site = 'https://app.example.com';
  const { app, authorization } = await appOnNothing({}, { allowedOrigins: [site] });
  const asked = await app.inject({
    method: 'OPTIONS',
    url: '/v1/sessions',
    headers: { host, origin: site, 'access-control-request-method': 'POST' },
  });
  expect(asked.statusCode).toBe(204);
  expect(asked.headers).toMatchObject({ 'access-control-allow-origin': site, vary: 'origin' });
  expect(asked.headers['access-control-allow-credentials']).toBeUndefined();
  const read = await app.inject({ url: '/v1/sessions', headers: { host, origin: site, authorization } });
  expect(read.headers['access-control-allow-origin']).toBe(site);
  const other = await app.inject({
    method: 'OPTIONS',
    url: '/v1/sessions',
    headers: { host, origin: 'https://evil.example', 'access-control-request-method': 'POST' },
  });
  expect(other.statusCode).toBe(403);
  expect(other.headers['access-control-allow-origin']).toBeUndefined();
});

const upgradeOf = (path: string) =>
  `GET ${path} HTTP/1.1\r\nhost: gateway.test\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
  'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';

test.each([
  ['what is no HTTP', 'GARBAGE\r\n\r\n', 400, 'request_unreadable'],
  ['a TLS hello', '\x16\x03\x01\x02\x00', 400, 'request_unreadable'],
  [
    'headers without end',
    `GET / HTTP/1.1\r\nhost: gateway.test\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`,
    431,
    'headers_too_large',
  ],
  [
    'an upgrade to HTTP/2',
    'GET /healthz HTTP/1.1\r\nhost: gateway.test\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n',
    400,
    'request_unreadable',
  ],
  [
    'an address that cannot be read',
    'GET /v1/sessions/%zz HTTP/1.1\r\nhost: gateway.test\r\nconnection: close\r\n\r\n',
    404,
    'route_not_found',
  ],
  [
    'an expectation that nobody has',
    'GET /healthz HTTP/1.1\r\nhost: gateway.test\r\nexpect: 200-ok\r\n\r\n',
    417,
    'expectation_failed',
  ],
  ...['host: gateway.test', 'Authorization: Bearer other', 'content-type: text/plain'].map(
    (repeated): [string, string, number, string] => [
      `a repeated header, ${repeated},`,
      `POST /v1/sessions HTTP/1.1\r\nhost: gateway.test\r\nauthorization: Bearer one\r\ncontent-type: text/plain\r\n${repeated}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`,
      400,
      'request_unreadable',
    ],
  ),
  ['a WebSocket at an address that cannot be read', upgradeOf('/v1/sessions/%zz/inspect'), 404, 'route_not_found'],
  ['a WebSocket of an id that is too long', upgradeOf(`/v1/sessions/${'x'.repeat(2_000)}/ws`), 400, 'invalid_id'],
])('%s is answered with a problem, and the end', async (_what, sent, status, code) => {
  const { app } = await appOnNothing();
  const told = await connected(app, sent);
  expect(told).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(told).toMatch(/^content-type: application\/problem\+json/im);
  expect(told).toMatch(/^x-content-type-options: nosniff\r$/m);
  expect(JSON.parse(told.slice(told.indexOf('\r\n\r\n')))).toMatchObject({ status, code });
  await app.close();
});

test('what nobody may say is not offered either', async () => {
  const { app, authorization } = await appOnNothing();
  const { body } = await app.inject({
    method: 'POST',
    url: '/v1/sessions/x/cancel',
    headers: { host, authorization },
    payload: { acto: 'me' },
  });
  const { detail } = JSON.parse(body) as { detail: string };
  expect(detail).toBe('unknown field "acto"; cancel takes command_id, reason');
});

test('a body with a repeated member is refused, also where it came as plain text', async () => {
  const { app, authorization } = await appOnNothing();
  for (const type of ['application/json', 'text/plain']) {
    const answer = await app.inject({
      method: 'POST',
      url: '/v1/sessions/x/steer',
      headers: { host, authorization, 'content-type': type },
      payload: '{"body": "stop", "body": "go on"}',
    });
    expect(answer.json()).toMatchObject({
      status: 400,
      code: 'invalid_json',
      detail: expect.stringContaining('the member "body" is repeated'),
    });
  }
});

test('who has gone while a session is looked for takes no place among those who watch it', async () => {
  let found: (n: number) => void = () => undefined;
  const looked = new Promise<number>((resolve) => {
    found = resolve;
  });
  let asked = false;
  const session = {
    id: 's',
    ref: { tenant: 'default', sessionId: 's' },
    lastNumber: () => {
      asked = true;
      return looked;
    },
  } as unknown as Session;
  const metrics = createMetrics();
  const feeds = new SessionFeeds(metrics);
  const join = vi.spyOn(feeds, 'join');
  const { app, authorization } = await appOnNothing({
    feeds,
    clientOf: () => ({ session: () => session }) as unknown as GatewayClient,
  });
  const url = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const gone = new Promise((resolve) => {
    app.server.once('request', (_request, answer) => answer.once('close', resolve));
  });
  const socket = connect({ host: url.hostname, port: Number(url.port) });
  socket.write(
    `GET /v1/sessions/s/events HTTP/1.1\r\nhost: ${host}\r\nauthorization: ${authorization}\r\naccept: text/event-stream\r\n\r\n`,
  );
  await vi.waitFor(() => expect(asked).toBe(true));
  socket.destroy();
  await gone;
  found(1);
  await new Promise((resolve) => setImmediate(resolve));
  expect(join).not.toHaveBeenCalled();
  await app.close();
});

test('where the bus is away, it is not the hosts that are said to be', async () => {
  const session = {
    ref: { tenant: 'default', sessionId: 's' },
    wire: { state: () => Promise.reject(new NoHostError()) },
  };
  const client = { session: () => session } as unknown as GatewayClient;
  const answered = async (ping: () => Promise<void>) => {
    const { app, authorization } = await appOnNothing({ clientOf: () => client, ping });
    return (await app.inject({ url: '/v1/sessions/s/pending', headers: { host, authorization } })).json();
  };
  expect(await answered(() => Promise.reject(new Error('disconnected')))).toMatchObject({
    status: 503,
    code: 'nats_unreachable',
  });
});

test.each(['/v1/sessions', '/healthz', '/v1/whoami', '/openapi.json'])(
  'no method that an address does not take is a fault of the gateway: %s',
  async (url) => {
    const error = vi.fn();
    const { app } = await appOnNothing({ log: { ...SILENT, error } });
    for (const method of ['QUERY', 'TRACE', 'PROPFIND', 'PATCH'])
      for (const headers of [{}, { 'content-type': 'no type' }, { 'content-type': 'application/json' }]) {
        const answer = await app.inject({
          method: method as 'PATCH',
          url,
          headers: { host, ...headers },
          ...(method === 'TRACE' ? {} : { payload: '{' }),
        });
        expect(answer.json(), `${method} ${JSON.stringify(headers)}`).toMatchObject({
          status: 405,
          code: 'method_not_allowed',
        });
        expect(answer.headers.allow).toBeDefined();
      }
    expect(error).not.toHaveBeenCalled();
  },
);

test('what Fastify refuses for the request’s own fault is told as that, and what is ours is not', () => {
  const thrown = (code: string, statusCode: number) => Object.assign(new Error('why'), { code, statusCode });
  expect(problemFrom(thrown('FST_ERR_ROUTE_MISSING_CONTENT_TYPE', 400)).document).toMatchObject({
    status: 400,
    code: 'request_unreadable',
    detail: expect.stringContaining('why'),
  });
  expect(problemFrom(thrown('FST_ERR_REP_INVALID_PAYLOAD_TYPE', 500)).code).toBe('internal');
});

const posted = async (payload: string, type: string, more: Record<string, string> = {}) => {
  const sent = vi.fn(() => Promise.reject(new Error('it was sent')));
  const session = {
    id: 's',
    ref: { tenant: 'default', sessionId: 's' },
    lastNumber: async () => 1,
    wire: { send: sent },
  };
  const { app, authorization } = await appOnNothing({
    clientOf: () => ({ session: () => session }) as unknown as GatewayClient,
  });
  const answer = await app.inject({
    method: 'POST',
    url: '/v1/sessions/s/followup',
    headers: { host, authorization, 'content-type': type, ...more },
    payload,
  });
  return { ...answer.json(), wasSent: sent.mock.calls.length > 0 };
};

test.each([
  ['application/json', {}],
  ['text/plain', {}],
  ['application/json', { 'idempotency-key': 'k' }],
])('a number that nobody can hold is refused by its name, and not taken for nothing (%s, %j)', async (type, more) => {
  for (const number of ['1e999', '-1e999', '9'.repeat(400)])
    expect(await posted(`{"body":"x","a":[0,{"b":${number}}]}`, type, more)).toMatchObject({
      status: 400,
      code: 'invalid_field',
      field: 'a.1.b',
      wasSent: false,
    });
  expect(await posted('{"body":"x","dedupe_key":"1e999"}', type, more)).toMatchObject({ wasSent: true });
});

test('a body in another charset than UTF-8 is not read as if it were', async () => {
  for (const charset of ['utf-16', '"UTF-16LE"', 'latin1', ''])
    for (const type of ['application/json', 'text/plain'])
      expect(await posted('{"body":"x"}', `${type}; charset=${charset}`), charset).toMatchObject({
        status: 415,
        code: 'unsupported_media_type',
        field: 'content-type',
        wasSent: false,
      });
  for (const charset of ['utf-8', 'UTF-8', '"utf-8"', 'utf8'])
    expect(await posted('{"body":"x"}', `application/json; charset=${charset}`), charset).toMatchObject({
      wasSent: true,
    });
});

describe('the span of a request', () => {
  const traced = async () => {
    const spans: EndedSpan[] = [];
    const sink = { capturesContent: false, keeps: () => true, masked: (text: string) => text };
    const made = await appOnNothing(
      { spans: { ...sink, take: (span) => void spans.push(span) } },
      { ownOrigins: [`http://${host}:7707`, `http://${host}`] },
    );
    return { ...made, spans };
  };

  test('has the HTTP attributes of the conventions, and nothing of the query', async () => {
    const { app, authorization, spans } = await traced();
    const headers = { host: `${host}:7707`, authorization, 'user-agent': 'curl/8' };
    await app.inject({ url: '/v1/sessions/one/events?limit=0', headers });
    // A span is made when the answer is on its way.
    await expect.poll(() => spans).toHaveLength(1);
    expect(spans).toMatchObject([
      {
        name: 'GET /v1/sessions/:session_id/events',
        error: null,
        attributes: {
          'http.request.method': 'GET',
          'http.route': '/v1/sessions/:session_id/events',
          'http.response.status_code': 400,
          'url.path': '/v1/sessions/one/events',
          'url.scheme': 'http',
          'server.address': host,
          'server.port': 7707,
          'client.address': '127.0.0.1',
          'network.protocol.version': '1.1',
          'user_agent.original': 'curl/8',
          'coxswain.code': 'invalid_field',
        },
      },
    ]);
    expect(JSON.stringify(spans)).not.toContain('limit=0');
  });

  test('says why the gateway has failed', async () => {
    const { app, authorization, spans } = await traced();
    const payload = { prompt: 'Go.', model: 'scripted//x.yaml' };
    const { statusCode } = await app.inject({
      method: 'POST',
      url: '/v1/sessions',
      headers: { host, authorization },
      payload,
    });
    await expect.poll(() => spans).toHaveLength(1);
    expect([statusCode, spans[0]?.error]).toEqual([
      500,
      { type: 'internal', message: expect.stringContaining('internal error') },
    ]);
  });
});

test('a receipt that did not come is a 504 that names the command, its session, and how to ask again', () => {
  const unanswered = { commandId: 'cmd-1', sessionId: 's1', awaited: 'accepted', waitedMs: 1_000 } as const;
  expect(problemFrom(new ReceiptTimeoutError(unanswered)).document).toMatchObject({
    status: 504,
    code: 'receipt_timeout',
    command_id: 'cmd-1',
    session_id: 's1',
    detail: expect.stringMatching(
      /the command cmd-1 is stored, .* to the session s1 with the id cmd-1: it is applied once/,
    ),
  });
});
